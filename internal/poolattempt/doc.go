// SPDX-License-Identifier: Apache-2.0

// Package poolattempt makes one attempt to bring a backend pool in sync: it reads, records, writes,
// and recovers from what a second read can fix. poolwrite decides what is written, poolupdate when.
package poolattempt
