// SPDX-License-Identifier: Apache-2.0

// Package updater keeps Azure backend pools in sync with the cluster.
//
// An Operation requests that a pool hold what its BackendPool wants. Addresses are computed from
// the newest snapshot when the pool is written, so a late operation never applies stale ones.
//
// Each load balancer has a worker that takes operations from its queue, attempts them and requeues
// retries. Package schedule decides when and in which order, and diff what is written.
//
// Lock order: the worker's lock, the resource lease, the queue's lock. No call leaves the process
// under the queue's lock, and no goroutine holds two workers.
package updater
