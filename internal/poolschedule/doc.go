// SPDX-License-Identifier: Apache-2.0

// Package poolschedule decides when each backend pool is attempted, in which order, and how the
// outcome of an attempt affects its operations. It is pure: no state, no locks, no I/O; time is an
// argument.
//
// The main types are Operation (the work for one pool), History (what is known of a pool), Group (a
// pool's operations as scheduled), claim (the order among pools) and Verdict (the result of an
// attempt).
package poolschedule
