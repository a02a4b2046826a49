// SPDX-License-Identifier: Apache-2.0

// Package kube sets up the Kubernetes side of Weir: informers, controllers and their connections.
// The controllers are in the packages pools (BackendPools), services (Services with a load
// balancer) and nodes.
//
// Reconcilers never wait for a lane, and call Azure only to find the place of a Service or node.
// They read from the informers' stores: reads cannot fail, do not copy, and their results must not
// be modified.
package kube
