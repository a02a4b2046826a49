// SPDX-License-Identifier: Apache-2.0

// Package kube sets up the Kubernetes side of Weir: which informers and controllers run, and who
// hears of whom. What happens in it has rooms: pools and services are the controllers of
// BackendPools and of Services with a load balancer, nodes knows which nodes leave, ownership says
// whose a pool is, view is what informers hold. Below them, apiserver is the way to the API server,
// workqueue what the queues of all controllers have in common, events writes events, leases holds
// the leader's Lease and the resource lease, manifest says what an API server would refuse.
//
//	setup.go       New and Setup: options, informers, controllers
//	wiring.go      the rooms, and what each hears of the others
//	adminnews.go   what becomes of admin states, gathered
//	adminview.go   how admin states stand in all pools
//	adminwords.go  the events about admin states
//	nodeplace.go   the reconciler that labels nodes where there are several load balancers
//	nodeplaces.go  what is known of the place of each node
//	offline.go     a cluster without an API server, for plans
//	rehearsed.go   what a plan asks of it
//	memory.go      its objects, in the place of an API server
//	files.go       objects from files
//	broken.go      which of them an API server refuses
//	leave.go       what is taken out of a cluster that Weir leaves
//	record.go      the ConfigMap that says under which name the cluster is in Azure
//	wholewrites.go what is recorded there of writes of whole load balancers
//	message.go     sentences for people, by package words
//
// No reconciler waits for a lane, and none calls Azure but to find out where a Service or a
// node belongs. Reads come from the informers' stores, so they cannot fail and cost no
// copy: what is read there is never changed.
package kube
