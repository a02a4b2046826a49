// SPDX-License-Identifier: Apache-2.0

// Package poolupdate brings Azure backend pools level with the cluster.
//
// An Operation is an intent: this pool has to hold what its BackendPool wants.
// The addresses are computed from the newest snapshot when the pool is written,
// so operations cannot be reordered and a late one never applies stale addresses.
//
//	Lanes.Add ── queue.go      operations wait, grouped by pool
//	admission.go (pure)        which group runs next, and when
//	lane.go                    one goroutine a load balancer: take a group, attempt, settle
//	attempt.go                 Get → apply → record → Put
//	apply.go (pure)            observed + wanted + written → what to write
//	secondtry.go               what a fresh read can make good within the attempt
//	fence.go                   what becomes of a write whose answer was lost
//	conclude.go                an attempt's end: what is remembered, told and tried again
//	settle.go (pure)           outcome → requeue or drop, and what is said
//	cause.go (pure)            what an attempt was made for, and which addresses it took down
//	together.go (pure)         which pools are due together
//	whole.go, wholeend.go      several pools by one write of their load balancer, and its end
//	trial.go, verdicts.go      whether Azure takes such writes; verdictrecord.go keeps it
//	carry.go                   what a write of the whole load balancer does for its pools
//
// Lock order: the lane's lock, then the resource lease, then the queue's lock.
// No call leaves the process under the queue's lock, and no goroutine holds two lanes.
package poolupdate
