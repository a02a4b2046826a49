// SPDX-License-Identifier: Apache-2.0

// Package poolupdate brings Azure backend pools level with the cluster.
//
// An Operation is an intent: this pool has to hold what its BackendPool wants.
// The addresses are computed from the newest snapshot when the pool is written,
// so operations cannot be reordered and a late one never applies stale addresses.
//
//	lanes.go      Lanes, Config: one lane a load balancer; Add hands operations to theirs
//	operation.go  Operation, Ref: what is to be done for one pool
//	ports.go      what the lanes ask of Azure, the cluster, the ledger, the lease and the reporter
//	queue.go      operations wait, grouped by pool
//	admission.go  which group runs next, and when (pure)
//	stake.go      what a change of admin states is about, for the order among pools (pure)
//	lane.go       one goroutine a load balancer: take a group, attempt, settle
//	attempt.go    Get → apply → record → Put
//	apply.go      observed + wanted + written → what to write (pure)
//	secondtry.go  what a fresh read can make good within the attempt
//	fence.go      what becomes of a write whose answer was lost
//	interfaces.go a pool of network interfaces: admin states alone
//	fill.go       whether a write of the load balancer fills a pool (pure)
//	together.go   which pools are due together (pure)
//	whole.go, wholeend.go  several pools by one write of their load balancer, and its end
//	trial.go      whether Azure takes such writes
//	carry.go      what a write of the whole load balancer does for its pools
//	contest.go    somebody else who changes a pool back (pure)
//	drift.go      when a pool is looked at though nothing changed (pure)
//	conclude.go   an attempt's end: what is remembered, told and tried again
//	settle.go     outcome → requeue or drop, and what is said (pure)
//	cause.go      what an attempt was made for, and which addresses it took down (pure)
//	told.go       what people have heard of a pool
//	waits.go      which waits people hear of
//	marker.go     marks errors that leave a write's fate open
//
// Lock order: the lane's lock, then the resource lease, then the queue's lock.
// No call leaves the process under the queue's lock, and no goroutine holds two lanes.
package poolupdate
