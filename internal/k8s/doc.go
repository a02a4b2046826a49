// SPDX-License-Identifier: Apache-2.0

// Package k8s connects Weir to the Kubernetes API server.
//
// Connection reports when the API server is lost and reachable again. WorkQueue is the work queue of all controllers:
// fair per namespace, with back-off, and retries when the API server has recovered. EventQueue writes events one at a
// time, until the last attempt of the leader has ended. The leader election and ResourceLease, the Lease shared by all
// controllers of the load balancers, have their meaning in package leader.
package k8s
