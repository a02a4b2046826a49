// SPDX-License-Identifier: Apache-2.0

// Package services brings the load balancers of Services level. It watches Services and what they
// rest on, has package servicelb decide what happens next to each, and writes what that says.
//
//	reconciler.go     the Reconciler: its queue, and which controller runs
//	options.go        which Services it serves, and what makes their load balancers
//	service.go        the controller keyed by Service; Service and BackendPool events → Services
//	namespace.go      the labels of namespaces, where they place Services
//	cluster.go        the cluster, as package servicelb asks for it
//	ledger.go         what is written for a Service: finalizer, records, addresses, condition
//	backendpools.go   the BackendPools that Weir makes for a Service
//	nodes.go          which nodes the BackendPools of nodes select, where nodes are placed
//	events.go         what people are told
//	filled.go         a pool is filled, and its Services hear of it
//	gone.go           a BackendPool goes, whose Service went while nobody watched
//	dryrun.go         what would change, where a Service is to stay as it is
//	rehearsed.go      what a plan asks
//	reached.go        the cluster, as package balancer asks for it
//	foreign.go        which addresses of a pool others have put there
//	leftovers.go      what is named in Azure as a Service's, and no Service has it
//	states.go         how many Services are how far
package services
