// SPDX-License-Identifier: Apache-2.0

// Package poolwrite decides what an attempt writes to a backend pool, and what Azure's response
// means. It is pure: the caller reads, persists the Intent, and writes Result.Todo.Next.
//
// Prepare handles pools of IP addresses, PrepareStates and PrepareMembers those of network
// interfaces. Memory keeps what is known of lost writes, Down addresses and conflicts between
// attempts.
package poolwrite
