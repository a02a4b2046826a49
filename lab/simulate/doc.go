// SPDX-License-Identifier: Apache-2.0

// Package simulate looks for what the scenarios forgot. It plays random schedules on a
// scenario.Stage, in virtual time, and makes every check after every step.
//
//	schedule.go  a seed → a world and the steps in it (pure)
//	steps.go     what can happen, and how often
//	steps_*.go   what Azure and others do; the cluster and the process
//	stories.go   what belongs together in it
//	stories_*.go the stories of one leader or two; of the resource lease
//	pipelined.go the same of many pools that change at once, with writes that overlap
//	play.go      a schedule → what became of it
//	shrink.go    a schedule that fails → the shortest that still does
//	script.go    a schedule as a scenario file, and back
//	search.go    many seeds at once
//	whole.go     the same search with all of Weir, on the stage of package cluster
//	bubble.go    virtual time, in a test and outside of one
//
// The same seed gives the same schedule, and the same schedule the same trace.
package simulate
