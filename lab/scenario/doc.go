// SPDX-License-Identifier: Apache-2.0

// Package scenario plays stories of a cluster and its Azure against the rooms that
// decide and the real Azure client, in virtual time.
//
// A Stage holds an emulated Azure, a small cluster in memory and one process of
// Weir. Each Step is a verb with arguments: endpoints move, Azure throttles, the
// process is killed, time passes. What happens comes back as a trace, and after
// every step each Check is made. Kubernetes is replaced at the interfaces of
// poolupdate; everything between them and the wire is what ships.
//
//	stage.go        Stage: Do a step, check, trace
//	step.go         the language of steps
//	verbs.go        its words
//	verb_*.go       one file a verb
//	process.go      the lanes and the client of one life of the process
//	replicas.go     several processes, of which one leads
//	cluster.go      nodes, Services, BackendPools (poolupdate.Cluster)
//	informer.go     the news of them, which come late
//	backendpool.go  what a process does for a BackendPool
//	direct.go       nodes that begin or cease to drain
//	lease.go        the resource lease, and others who take it
//	ledger.go       what outlives the process, and who is told (Ledger, Reporter)
//	ledgerlate.go   writes of the ledger that are late
//	toldstatus.go   what a status says of what people have heard
//	verdicts.go     the record of writes of whole load balancers
//	wire.go         the way to Azure, and back
//	body.go         a pool on that way
//	faultrules.go   what the emulator is told to do wrong
//	check.go        what must hold after every step
//	check_*.go      one file a kind of it
//	state.go        what the checks ask of Azure
//	journal.go      what happened since the last step
//	note.go         what a report says of its pool
//	whole.go        which pools an attempt wrote together
//	pipeline.go     which pools were sent one after the other
//	due.go, pace.go how late and how often an attempt may come
//	gates.go        what 429s have closed
//	overrun.go      writes that should have met 412
//	origin.go       whose the addresses are that stay
//
// # Time and concurrency
//
// A Stage lives in one testing/synctest bubble and is driven by one goroutine. It
// sends no request from two load balancers in the same instant: each is a little
// further away than the one before. So the same steps give the same trace.
package scenario
