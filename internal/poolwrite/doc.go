// SPDX-License-Identifier: Apache-2.0

// Package poolwrite decides what an attempt to bring a backend pool level writes, and what
// follows from what Azure answers. It calls nobody: whoever makes the attempt hands in what was
// read, what is wanted and what is on record, records the Intent, and writes Result.Todo.Next.
//
//	desired.go     what a pool has to hold, what is on record of it, what is about to be recorded
//	prepare.go     observed + desired + recorded → what to write, and what to record before
//	differs.go     how a pool differs from what is wanted, for people
//	apply.go       a pool of IP addresses: members and admin states
//	interfaces.go  a pool of network interfaces: admin states alone
//	members.go     a pool of network interfaces: which machines join and leave
//	handed.go      what is known of these afterwards, and what people read of it
//	rehearse.go    which network interfaces would join and leave, for plans
//	owned.go       which addresses of a pool are Weir's
//	result.go      what an attempt has found out: from the read to its end
//	outcome.go     how an attempt ended, by the error that it met
//	fence.go       what becomes of a write whose answer was lost
//	memory.go      what is remembered from one attempt to the next, and what people hear of it
//	contest.go     somebody else who changes a pool back
//	took.go        what pools show of how Azure takes a write of their load balancer
package poolwrite
