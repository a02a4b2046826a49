// SPDX-License-Identifier: Apache-2.0

// Package workqueue provides the work queue of all controllers: fair per namespace, with back-off,
// and retries when the API server has recovered.
package workqueue
