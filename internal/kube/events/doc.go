// SPDX-License-Identifier: Apache-2.0

// Package events writes events of Kubernetes: all of them, one after the other, for as long
// as somebody has something to say.
//
//	queue.go     the events that wait
//	write.go     what one try makes of an event
//	runnable.go  what the leader runs, to whose end events are written
package events
