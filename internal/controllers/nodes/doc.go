// SPDX-License-Identifier: Apache-2.0

// Package nodes contains the Node controllers: draining nodes, taints for announced evictions, placement on
// load balancers, and admin state events.
package nodes
