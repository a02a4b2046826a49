// SPDX-License-Identifier: Apache-2.0

// Package pools brings BackendPools into the state that they are entitled to: it watches what
// decides the members of a pool, and has package backendpool decide about it.
//
//	reconciler.go     the Reconciler: its queues, and which controllers run
//	endpointslice.go  slice events → Services
//	service.go        the controller keyed by Service; Service events → BackendPools
//	node.go           node events → Services and BackendPools
//	namespace.go      events of namespaces, where they grant load balancers
//	backendpool.go    the controller keyed by BackendPool
//	ports.go          the cluster, as package backendpool asks for it
//	events.go         what people are told
//	api.go            its API server: reads, server-side apply of statuses, finalizers
package pools
