// SPDX-License-Identifier: Apache-2.0

// Package balancer makes the cluster's load balancers what its Services want. It gathers
// what all Services that are due want, by load balancer, prepares their public IPs,
// plans all of them at once, writes under the lane of the load balancer, and checks what
// Azure then shows.
//
//	ensure.go     what is asked for, and what came of it
//	locate.go     on which load balancer a Service belongs
//	atlas.go      what is known of the cluster's load balancers
//	worker.go     one loop a load balancer: gather, prepare, write, tidy
//	write.go      one plan: read, compare, write, check
//	share.go      what a Service wants of one load balancer
//	foreign.go    what others have put into the pools that could go
//	blame.go      who is to blame for a write that Azure refused
//	contested.go  what somebody else keeps undoing, and what then becomes of a Service
//	guard.go      the security group: one loop for all Services of the cluster
//	situation.go  what they ask of it
//	additional.go whose the further addresses are that Services name
//	losses.go     what would take addresses away, before it does
//	leftovers.go  what is named as a Service's of which there is none
//
// Nothing is retried here: what fails goes back to who asked, with the time before which
// Azure wants no call. A write whose fate is unknown is settled by the read with which the
// next one begins.
package balancer
