// SPDX-License-Identifier: Apache-2.0

// Package poolupdate brings Azure backend pools in sync with the cluster.
//
// An Operation is an intent: make this pool hold what its BackendPool wants. Addresses are computed
// from the newest snapshot when the pool is written, so operations cannot be reordered and a late
// one never applies stale addresses.
//
// One worker per load balancer takes operations from its queue, attempts them, and requeues what
// has to be retried. poolschedule decides when a pool is due and how an outcome is handled,
// poolwrite decides what is written, and poolattempt runs the attempt of one pool.
//
// Lock order: the worker's lock, then the resource lease, then the queue's lock. No call leaves the
// process under the queue's lock, and no goroutine holds two workers.
package poolupdate
