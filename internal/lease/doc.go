// SPDX-License-Identifier: Apache-2.0

// Package lease shares one Kubernetes Lease among all lanes of a process. Other
// controllers take the same Lease before they write load balancers of the cluster, so
// whoever holds it is alone.
//
// The first lane that enters acquires the Lease and the last that leaves releases it.
// Under steady work that would be never, or for a moment only, so after a turn no
// further lane enters until the Lease was free for a breath and others could take it.
//
//	shared.go  who may enter, and when; acquiring and releasing
//	hold.go    one acquisition: its renewals, and whether a write may start under it
package lease
