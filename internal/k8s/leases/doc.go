// SPDX-License-Identifier: Apache-2.0

// Package leases implements Weir's two Leases: the leader election, and the resource Lease shared
// by all controllers of the cluster's load balancers. Packages leader and lease define their meaning.
package leases
