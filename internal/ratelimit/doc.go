// SPDX-License-Identifier: Apache-2.0

// Package ratelimit decides how soon a busy pool may be written again. Time is an argument, except in Sleep.
//
// Azure limits the writes of a subscription across all clients. Weir spends at most a share, where
// it reduces waiting most: rarely changing pools are written at once, and busy pools divide the
// rest. No pool waits longer than the interval for that,
// or MaxStretch intervals while the share is lowered. Namespaces have fair shares, and rejected
// writes are retried after growing pauses.
package ratelimit
