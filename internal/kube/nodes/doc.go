// SPDX-License-Identifier: Apache-2.0

// Package nodes is what nodes that leave are to Weir: which of them drain, which get a taint
// because their eviction is announced, and what is said where addresses stay Down.
//
//	draining.go   which nodes are to take no new flows
//	evictions.go  the controller that taints those whose eviction is announced
//	announced.go  which announcements need no record on their nodes
//	leftdown.go   what is said at a start if admin states are left alone
package nodes
