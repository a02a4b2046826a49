// SPDX-License-Identifier: Apache-2.0

// Package publicip manages the public IPs of Services: it finds those that users provide, creates missing ones,
// and deletes those it made when they are no longer needed. A Round covers all Services written to one load
// balancer together.
//
// A failure affects only the Services that need the public IP. The package does not retry.
package publicip
