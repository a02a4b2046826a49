// SPDX-License-Identifier: Apache-2.0

// Package verdicts knows, by subscription, how Azure takes writes of whole load balancers for their
// pools, and writes of pools that overlap, and lets one trial at a time find it out. What may be tried, and what is written down, is
// decided by wholewrite.
//
//	verdicts.go  what is known, trials, and what is learned from a write
//	record.go    the durable record: read once, written after each news
package verdicts
