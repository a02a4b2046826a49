// SPDX-License-Identifier: Apache-2.0

// Package backendpool reconciles BackendPools: it decides which pool each may use, queues operations for the
// pool updater, and maintains status and events.
//
// The cluster, the pool updater, the API server and events are interfaces. No lock is held across their
// calls, and the caller passes the time, so everything runs in virtual time.
package backendpool
