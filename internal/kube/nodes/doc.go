// SPDX-License-Identifier: Apache-2.0

// Package nodes is what becomes of Nodes: which of them drain, which get a taint because their
// eviction is announced, on which of several load balancers each is, and what is said of their
// admin states.
//
//	draining.go    which nodes are to take no new flows
//	evictions.go   the controller that taints those whose eviction is announced
//	conditions.go  which conditions of a node announce its eviction
//	announced.go   which announcements need no record on their nodes
//	placing.go     the controller that labels each with its load balancer
//	places.go      what is known of the place of each
//	adminstates.go what becomes of admin states, gathered
//	adminview.go   how admin states stand in all pools
//	adminwords.go  the events about admin states
//	leftdown.go    what is said at a start if admin states are left alone
package nodes
