// SPDX-License-Identifier: Apache-2.0

// Package lease shares one Kubernetes Lease among all lanes of a process. Other
// controllers take the same Lease before they write load balancers of the cluster, so
// whoever holds it is alone.
//
// The first lane that enters acquires the Lease and the last that leaves releases it.
// Under steady work that would be never, so after a turn no further lane enters until
// the Lease was released once and others had the time to take it.
package lease
