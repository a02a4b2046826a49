// SPDX-License-Identifier: Apache-2.0

// Package scenario runs scripted scenarios against the pool updater and the real Azure client, in
// virtual time.
//
// A Stage holds an emulated Azure, a small in-memory cluster and one Weir process. Each Step is a
// verb with arguments: endpoints move, Azure throttles, the process is killed, time passes. A step
// returns a trace, and every Check runs after it. Kubernetes is replaced at the interfaces of
// updater; everything between them and the wire is the shipped code.
//
// # Time and concurrency
//
// A Stage lives in one testing/synctest bubble and is driven by one goroutine. Load balancers have
// different latencies, so no two requests are sent at the same instant and the same steps give the
// same trace.
package scenario
