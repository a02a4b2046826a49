// SPDX-License-Identifier: Apache-2.0

// Package kube sets up the Kubernetes side of Weir: which informers and controllers run, and who
// hears of whom. What happens in it has rooms: pools and services are the controllers of
// BackendPools and of Services with a load balancer, nodes is what becomes of Nodes, ownership says
// whose a pool is, view is what informers hold. Below them, apiserver is the way to the API server,
// workqueue what the queues of all controllers have in common, events writes events, leases holds
// the leader's Lease and the resource lease, record what a Weir of the cluster has written down,
// manifest says what an API server would refuse. provisions is the controller of Provisions, which runs
// in a program of its own. Beside them, offline is a cluster without an API
// server, and leave takes out what Weir wrote.
//
//	setup.go    New and Setup: options, informers, controllers
//	wiring.go   the rooms, and what each hears of the others
//	machines.go which machines the nodes are, for who has them join pools of network interfaces
//
// No reconciler waits for a lane, and none calls Azure but to find out where a Service or a
// node belongs. Reads come from the informers' stores, so they cannot fail and cost no
// copy: what is read there is never changed.
package kube
