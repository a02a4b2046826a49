// SPDX-License-Identifier: Apache-2.0

// Package poolschedule decides when a backend pool is attempted, which of several goes first,
// and what becomes of an operation by the outcome. It keeps nothing, takes no lock and calls
// nobody: times are arguments.
//
//	operation.go  Operation, Ref: what is to be done for one pool
//	coalesce.go   which operations one that waits stands for
//	history.go    what a lane remembers of a pool, and what an attempt changes in that
//	due.go        when the operations of a pool may be attempted
//	company.go    how long looks wait for each other
//	order.go      which pool goes next: claim
//	turn.go       what is attempted between two writes of the load balancer
//	stake.go      what a change is about, for the order among pools
//	batch.go      which pools are written together
//	unrest.go     when nothing is to be tried on a load balancer
//	drift.go      when a pool is looked at though nothing changed
//	cause.go      what an attempt was made for
//	settle.go     outcome → requeue or drop, and what is said
package poolschedule
