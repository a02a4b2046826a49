// SPDX-License-Identifier: Apache-2.0

// Package backendpool decides what becomes of a BackendPool: what it is entitled to, which
// operations the lanes get for it, and what its status says.
//
//	ports.go        what the room asks of the cluster, and of the API server
//	entitlement.go  (pure) what a BackendPool is entitled to, and who holds a pool
//	statuses.go     the one status of each BackendPool
//	firstread.go    what other processes have recorded of all of them
//	entry.go        what is known of one
//	write.go        how a status gets to the API server
//	unite.go        what another process has recorded stays on record
//	reconcile.go    brings a BackendPool into the state that it is entitled to
//	release.go      lets one go that is being deleted
//	operations.go   queues operations for the lanes
//	situation.go    when an operation has to be queued, and when to look again
//	desired.go      poolupdate.Cluster: Relevant and Desired
//	record.go       poolattempt.Ledger: what Weir wrote into a pool
//	unrecorded.go   what stands in a pool that has no record yet
//	report.go       poolupdate.Reporter: what became of an attempt
//	waiting.go      poolupdate.Reporter: what a change waits for
//	conditions.go   (pure) the conditions of a status
//	contested.go    (pure) that somebody else keeps undoing what Weir writes
//	parking.go      (pure) until when Azure is left alone, and why
//	adminstates.go  which members became Down, or take new flows again
//	events.go       what Services and pools of nodes are told of an attempt
//	lastevent.go    (pure) what they were told last
//	words.go        (pure) sentences for people
//
// The cluster, the lanes, the API server and events are reached by interfaces, no lock is held
// across a call of theirs, and time is that of the caller: so all of it runs in virtual time.
package backendpool
