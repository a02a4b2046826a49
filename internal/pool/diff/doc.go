// SPDX-License-Identifier: Apache-2.0

// Package diff decides what an attempt writes to a backend pool, and what Azure's response
// means. It is pure: the caller reads, persists the Intent, and writes the pool.
//
// There are separate functions for pools of IP addresses and those of network interfaces. Memory
// keeps what is known of lost writes, Down addresses and conflicts between attempts.
package diff
