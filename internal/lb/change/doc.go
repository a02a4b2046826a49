// SPDX-License-Identifier: Apache-2.0

// Package change describes the differences between two versions of a load balancer or security group.
package change
