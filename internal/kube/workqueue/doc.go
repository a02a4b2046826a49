// SPDX-License-Identifier: Apache-2.0

// Package workqueue is what the work queues of all controllers have in common.
//
//	queue.go    a work queue as seen from outside of its controller: what else is added, and
//	            what is tried again once the API server answers
//	backoff.go  how long an object waits whose reconciliation failed
//	fair.go     one request of each namespace waits at a time
//	watch.go    what becomes of events, and which of them pass
//	result.go   what follows from the end of a reconciliation
package workqueue
