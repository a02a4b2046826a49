// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer reconciles the cluster's load balancers with its Services. Each load balancer has its own
// rounds: gather the due Services, prepare their public IPs, plan all of them at once, write while no pool of
// the load balancer is written, and check the result.
//
// The package does not retry. A failed request returns its error with Azure's Retry-After to the caller. If the
// outcome of a write is unknown, the next round reads the load balancer first.
package loadbalancer
