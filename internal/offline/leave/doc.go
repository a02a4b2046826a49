// SPDX-License-Identifier: Apache-2.0

// Package leave removes from a cluster what Weir wrote there, so that another service controller
// can take over.
package leave
