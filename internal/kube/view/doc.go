// SPDX-License-Identifier: Apache-2.0

// Package view is what Weir sees of Kubernetes: what informers hold, as the values that the rooms
// know. It writes nothing, and knows neither Azure nor any controller.
//
//	snapshot.go   what the informers' stores hold, and what is asked of it
//	store.go      stores in memory, for who has no informers
//	index.go      by what objects are looked up
//	cache.go      which kinds are cached, and what is stripped from them
//	provision.go  what of a Provision is kept, and what many have in common
//	hosts.go      what is kept of endpoints
//	shared.go     a status in as little memory as it takes
//	convert.go    slices, nodes and BackendPools → the values that the rooms know
//	machine.go    the machines of nodes
//	duplicates.go nodes that are one member, on several load balancers
//	service.go    Services → the values of package service and servicelb
//	serving.go    which Services have a load balancer of Weir's
//	dryrun.go     what people say on a Service besides what they want of Azure
//	names.go      labels, annotations, finalizers and conditions, by name
//	azurename.go  names of Azure, fit for Kubernetes
//	selector.go   who is selected by labels
//
// Reads come from memory, so they cannot fail and cost no copy: what is read there is never
// changed.
package view
