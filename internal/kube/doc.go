// SPDX-License-Identifier: Apache-2.0

// Package kube is the Kubernetes side of Weir. It watches what decides the members
// of a backend pool, has package backendpool decide about it, and writes status and events.
//
//	setup.go          New and Setup: options, informers, controllers
//	cache.go          which kinds are cached, and what is stripped from them
//	index.go          by what they are looked up
//	convert.go        API objects → the values that the rooms know
//	endpointslice.go  slice events → Services
//	service.go        the reconciler keyed by Service; Service events → BackendPools
//	node.go           node events → Services and BackendPools
//	draining.go       which nodes are to take no new flows; preemption.go taints those
//	                  whose eviction is announced
//	backendpool.go    the reconciler keyed by BackendPool
//	poolports.go      the cluster, the owner and the events of package backendpool
//	poolapi.go        its API server: reads, server-side apply of statuses, finalizers
//	right.go          which right a BackendPool has to its pool; proof.go whose it is
//	snapshot.go       what the informers' stores hold
//	balancing.go      the reconciler of Services that have a load balancer of Weir's, which
//	                  servicelb decides: serviceview.go what it sees of a Service,
//	                  serviceledger.go and madepools.go what is written for it,
//	                  serviceevents.go what people are told
//	nodeplace.go      the reconciler that labels nodes where there are several load
//	                  balancers: nodeplaces.go what is known of each, placelabel.go the
//	                  label, nodeselect.go the BackendPools that select it
//	namespace.go      the labels of namespaces, where they place Services
//	wake.go           work queues, as seen from outside of them
//	message.go        (pure) sentences for people, by package words
//	events.go         Kubernetes events; eventqueue.go writes them
//	leading.go        what the leader runs: the lanes, and the writer of their events
//	lease.go          lease.Holder: the lock that other controllers take, too
//
// No reconciler waits for a lane, and none calls Azure but to find out where a Service or a
// node belongs. Reads come from the informers' stores, so they cannot fail and cost no
// copy: what is read there is never changed.
package kube
