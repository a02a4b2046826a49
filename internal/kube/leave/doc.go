// SPDX-License-Identifier: Apache-2.0

// Package leave takes out of a cluster what Weir wrote there, for another service controller.
//
//	leave.go Services, BackendPools, Nodes
package leave
