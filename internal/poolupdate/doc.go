// SPDX-License-Identifier: Apache-2.0

// Package poolupdate brings Azure backend pools level with the cluster.
//
// An Operation is an intent: this pool has to hold what its BackendPool wants.
// The addresses are computed from the newest snapshot when the pool is written,
// so operations cannot be reordered and a late one never applies stale addresses.
//
//	lanes.go       Lanes, Config: one lane a load balancer; Add hands operations to theirs
//	ports.go       what the lanes ask of Azure, the cluster, the ledger, the lease and the reporter
//	queue.go       operations wait, grouped by pool
//	lastwords.go   what each Service was told last of a pool
//	take.go        operations leave the queue for an attempt, and come back
//	looks.go       the queue has pools looked at though nothing changed
//	refill.go      the queue has pools filled that a write of their load balancer has made
//	backlog.go     what waits
//	lane.go        one goroutine a load balancer: take a group, attempt, settle
//	members.go     pools of network interfaces wait for their machines
//	strategy.go    pool by pool, one after the other without waiting, or the load balancer as a whole
//	whole.go, wholeend.go  several pools by one write of their load balancer, and its end
//	pipeline.go, pipelineend.go  several pools by writes that overlap, and their end
//	carry.go       what a write of the whole load balancer does for its pools
//	conclude.go    an attempt's end: what is remembered, told and tried again
//	waits.go       which waits people hear of
//
// When a pool is due, and what becomes of its operations, is decided in poolschedule; what is
// written in poolwrite. What an attempt of one pool does is in poolattempt.
//
// Lock order: the lane's lock, then the resource lease, then the queue's lock.
// No call leaves the process under the queue's lock, and no goroutine holds two lanes.
package poolupdate
