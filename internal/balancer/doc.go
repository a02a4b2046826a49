// SPDX-License-Identifier: Apache-2.0

// Package balancer makes the cluster's load balancers what its Services want. Each load balancer
// has rounds of its own: they gather the Services that are due, have their public IPs ready, plan
// all of them at once, write under the lane of the load balancer, and check what Azure then shows.
//
//	balancers.go    Balancers.Ensure: jobs wait, are gathered, and go from one resource to the next
//	round.go        the whole round of a load balancer, on one page
//	read.go         the load balancer, its turn, and what others have put into the pools that could go
//	privateips.go   which private addresses are reserved for namespaces; room privateip
//	bounds.go       which Services exceed the bounds of their namespace, before anything is made for them
//	plan.go         what the Services of a round want of it; room plan
//	contested.go    what somebody else keeps undoing stays as it is; room contest
//	note.go         what came of it, on the jobs and in the log
//	blame.go        whom Azure refuses, if it refuses a write
//	publish.go      the rounds of Private Link Services, and which frontends cannot go before them; room privatelinkround
//	guard.go        the rounds of the security group, and addresses that Services had until it is closed there; room securitygroup
//
// Besides:
//
//	ports.go        what is asked of Azure, of the lanes and of the cluster
//	request.go      what is asked for, and what came of it
//	job.go          the steps of a request (pure)
//	locate.go       on which load balancer a Service belongs
//	placements.go   what is known of the cluster's load balancers, and on which of them the nodes are
//	fill.go         which rules wait until a new pool is filled
//	empty.go        which network interfaces have to leave before a load balancer can go
//	convert.go      what stands in for a pool that goes from one kind of members to the other
//	losses.go       what would take addresses away, before it does
//	leftovers.go    what is named as a Service's of which there is none
//	unneeded.go     what Weir left to others and nothing needs any more is deleted, without a Service
//
// Nothing is retried here: what fails goes back to who asked, with the time before which
// Azure wants no call. A write whose fate is unknown is settled by the read with which the
// next one begins.
package balancer
