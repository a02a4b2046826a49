// SPDX-License-Identifier: Apache-2.0

// Package pace decides how soon a busy pool may be written again. It is pure: time is an argument.
//
// Azure limits the writes of a subscription across all clients. Weir spends at most a share of the
// limit, where it reduces waiting most: a pool that changes rarely is written at once, and pools
// that change all the time divide what is left. No pool waits longer than the interval for this.
// Namespaces have fair shares, and writes that Azure rejects are retried after growing pauses.
package pace
