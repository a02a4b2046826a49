// SPDX-License-Identifier: Apache-2.0

// Package adminstate decides which nodes are to take no new flows. It is pure: taints and
// events go in as values.
//
//	taint.go         which taints say that a node leaves
//	announcement.go  whose events are believed, and which are heard already
//	preemption.go    what an event that announces an eviction does to its node
package adminstate
