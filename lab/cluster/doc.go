// SPDX-License-Identifier: Apache-2.0

// Package cluster has all of Weir, wired as it ships, serve a small cluster in virtual time.
//
// A Stage holds an API server and an Azure, both in memory, and processes of Weir: app.RunIn, with
// client-go, controller-runtime and the Azure SDK as they are. People write Services, nodes,
// endpoints and BackendPools; both servers go wrong on demand; processes are killed. What Azure
// has to hold is worked out from the objects alone, and compared with what it holds.
//
//	stage.go          Stage: both servers, time, what never may happen
//	process.go        processes of Weir, their ends, and those that follow
//	wire.go           the ways of a process to both servers
//	lead.go           who may write
//	journal.go        what is logged, and tokens in it
//	objects.go        what people write to the API server
//	foreign.go        what others write to Azure
//	machines.go       the machines of nodes, where pools hold network interfaces
//	several.go        two load balancers, between which Services and nodes move
//	published.go      Private Link Services, to which consumers connect
//	edge.go           a load balancer of somebody else, whose pools BackendPools fill
//	evictions.go      nodes whose eviction is announced, and how many of them go Down
//	themes.go         what some schedules are about besides
//	faults.go         what goes wrong
//	observed.go       what Azure holds, as lines to compare
//	fed.go            which rules have members, if that is watched
//	joined.go         which machines are in which pools, as their interfaces say
//	wanted.go         what it has to hold, as the same lines
//	check.go          all that has to hold once faults have ended
//	schedule.go       a seed → a world and what happens in it
//	steps_cluster.go  what people do
//	steps_faults.go   what goes wrong
//	play.go           a schedule → whether all held
//
// # Time and concurrency
//
// A Stage lives in one testing/synctest bubble and is driven by one goroutine. The same seed gives
// the same schedule; which of two requests of one instant comes first is up to the scheduler.
package cluster
