// SPDX-License-Identifier: Apache-2.0

// Package contest detects other clients that revert Weir's writes, and yields to them. Write takes
// the lease shared with other controllers and retries once after a conflicting write.
package contest
