// SPDX-License-Identifier: Apache-2.0

// Package leases holds the two Leases of Weir at the API server: that of the leader's election,
// and that which every controller of the cluster's load balancers takes. What they mean is
// decided in packages lead and lease.
//
//	election.go  the leader's: its pace, and the lock that tells the fence of renewals, and who leads
//	fenced.go    clients that change nothing once the lead is over
//	resource.go  lease.Holder: the lock that other controllers take, too
package leases
