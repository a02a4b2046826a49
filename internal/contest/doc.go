// SPDX-License-Identifier: Apache-2.0

// Package contest detects other clients that revert what Weir writes and yields to them. It also
// wraps a write: it takes the lease shared with other controllers, retries once after a conflicting
// write, and delays writes to resources that another client is updating.
package contest
