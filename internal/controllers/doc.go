// SPDX-License-Identifier: Apache-2.0

// Package controllers sets up the Kubernetes side of Weir: informers, controllers and their connections.
//
// Reconcilers never wait for a pool update, and call Azure only to find the place of a Service or node.
// They read from the informers' stores without copying, so the results must not be modified.
package controllers
