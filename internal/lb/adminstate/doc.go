// SPDX-License-Identifier: Apache-2.0

// Package adminstate decides which nodes must take no new flows. It is pure: taints and events go
// in as values.
//
//	taint.go         taints and conditions of leaving nodes
//	delay.go         how long the cluster autoscaler is delayed
//	eviction.go  trusted events, and those already handled
//	preemption.go    how an eviction event changes its node
package adminstate
