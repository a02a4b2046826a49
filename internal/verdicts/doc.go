// SPDX-License-Identifier: Apache-2.0

// Package verdicts tracks, per subscription, whether Azure supports batched and overlapping pool
// updates, and allows one trial at a time to find out. wholewrite decides what may be tried and
// recorded.
package verdicts
