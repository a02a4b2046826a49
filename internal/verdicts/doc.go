// SPDX-License-Identifier: Apache-2.0

// Package verdicts tracks, per subscription, whether Azure supports writes of whole load balancers
// and overlapping pool writes, and allows one trial at a time to find out. wholewrite decides what
// may be tried and recorded. The record is read once and written after each change.
package verdicts
