// SPDX-License-Identifier: Apache-2.0

// Package attempt makes one attempt to bring a backend pool in sync: it reads, records, writes,
// and recovers from what a second read can fix. Package diff decides what is written, updater when.
package attempt
