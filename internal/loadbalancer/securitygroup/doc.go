// SPDX-License-Identifier: Apache-2.0

// Package securitygroup reconciles the network security group of the nodes: it admits the clients of all
// Services and no others, with one write for all due Services. It does not retry, except after a 412.
package securitygroup
