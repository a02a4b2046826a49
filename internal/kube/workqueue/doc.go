// SPDX-License-Identifier: Apache-2.0

// Package workqueue provides the work queue shared by all controllers: fair queueing per namespace,
// back-off, and retries when the API server has recovered.
package workqueue
