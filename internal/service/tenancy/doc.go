// SPDX-License-Identifier: Apache-2.0

// Package tenancy decides what a namespace may use: its share of a load balancer and of the security group, the load
// balancers it may bind pools of, and the public IPs of other namespaces.
package tenancy
