// SPDX-License-Identifier: Apache-2.0

// Package conflict detects other clients that revert Weir's writes, and yields to them. It also
// makes writes under the lease shared with other controllers, with a second try after a conflict.
package conflict
