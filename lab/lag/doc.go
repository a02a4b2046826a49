// SPDX-License-Identifier: Apache-2.0

// Package lag measures how long changes of pools take to reach Azure, in virtual time: the shipped
// updater and Azure client process traces against the emulator. The results are compared with
// schedules that know the future, and with a fixed interval.
//
//	trace.go        input: Traces
//	weir.go         runs Weir on a trace
//	model.go        runs a schedule on a trace
//	clairvoyant.go  best schedule with knowledge of the future
//	exact.go        optimum of small traces
//	bound.go        lower bound
//	measure.go      writes → lag
//	page.go, plot.go  docs/reference/lag.md and its plots
package lag
