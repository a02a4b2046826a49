// SPDX-License-Identifier: Apache-2.0

// Package nicupdate adds machines to pools of network interfaces and removes them. One worker per
// written resource (a network interface or a uniform scale set) serializes its writes. Package nic
// decides what to write; the pool workers decide when to retry.
//
// Updater.mu is never held during a call to Azure, the cluster or the lease. It guards each worker
// and its machines, but not a worker's scale set memory, which belongs to the running attempt.
package nicupdate
