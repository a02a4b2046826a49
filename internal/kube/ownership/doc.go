// SPDX-License-Identifier: Apache-2.0

// Package ownership says whose a pool of a load balancer is: which BackendPools Weir made, which
// right each has to its pool, and what a Service's own pools are called. It reads, and decides;
// it writes nothing.
//
//	pools.go   what it knows
//	proof.go   which BackendPools are provably Weir's own
//	right.go   which right a BackendPool has to its pool, and why it has none
//	names.go   what the pools are called that a Service has for itself
//	needed.go  the BackendPool that Weir would make, and whether a Service needs one
package ownership
