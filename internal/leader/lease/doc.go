// SPDX-License-Identifier: Apache-2.0

// Package lease shares one Kubernetes Lease among all workers of a process. Other controllers take
// the same Lease before they write the cluster's load balancers, so its holder is the only writer.
//
// The first worker that enters acquires the Lease and the last one releases it. Under constant work
// it would never be free, so after a minute no further worker enters until the Lease was free for a
// few seconds.
//
//	shared.go  admission; acquiring and releasing
//	lock.go    one acquisition: its renewals, and whether a write may start
package lease
