// SPDX-License-Identifier: Apache-2.0

// Package poolattempt makes one attempt to bring a backend pool in sync: it reads the pool, records
// the write, writes, and recovers from what a fresh read can fix.
//
// poolwrite decides what is written. poolupdate decides when an attempt is made, for which pools,
// and what happens to its operations.
package poolattempt
