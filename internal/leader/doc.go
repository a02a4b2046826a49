// SPDX-License-Identifier: Apache-2.0

// Package leader reports whether this process may still write as the leader.
//
// A process doesn't notice that it was suspended, by SIGSTOP, machine maintenance or CPU
// starvation. When it resumes, another replica may lead, and its own data is stale. So each write
// checks the Fence right before it is sent. The Fence compares the time since the last successful
// renewal was requested, including time asleep.
//
//	term.go   one term of leadership as a pure function of clock readings
//	fence.go  Fence: the term of this process, shared by all writers
//	body.go   checks again while a request is sent
//	observed.go  when another process last renewed the Lease
//
// SharedLease shares one Kubernetes Lease among all workers of a process. Other controllers take the same Lease before
// they write the cluster's load balancers, so its holder is the only writer. The first worker that enters acquires it
// and the last one releases it. Under constant work it would never be free, so after a minute no further worker enters
// until the Lease was free for a few seconds.
//
//	sharedlease.go  admission; acquiring and releasing
//	leaselock.go    one acquisition: its renewals, and whether a write may start
package leader
