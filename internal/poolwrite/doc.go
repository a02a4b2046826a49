// SPDX-License-Identifier: Apache-2.0

// Package poolwrite decides what an attempt writes to a backend pool and what Azure's response
// means. It does no I/O: the caller passes in the observed pool, the desired state and the record,
// persists the Intent, and writes Result.Todo.Next.
//
// Result accumulates what an attempt learns. Prepare handles pools of IP addresses, PrepareStates
// and PrepareMembers those of network interfaces. Memory carries knowledge about lost writes, Down
// addresses and conflicts from one attempt to the next.
package poolwrite
