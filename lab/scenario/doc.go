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
//	stage.go     Stage: Do a step, check, trace
//	step.go      the language of steps
//	process.go   the lanes and the client of one life of the process
//	cluster.go   nodes, Services, BackendPools (poolupdate.Cluster)
//	ledger.go    what outlives the process, and who is told (Ledger, Reporter)
//	wire.go      the way to Azure, and back
//	verb_*.go    one file a verb
//	check_*.go   what must hold whatever happens
//
// # Time and concurrency
//
// A Stage lives in one testing/synctest bubble and is driven by one goroutine. It
// sends no request from two load balancers in the same instant: each is a little
// further away than the one before. So the same steps give the same trace.
package scenario
