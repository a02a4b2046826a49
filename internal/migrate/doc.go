// SPDX-License-Identifier: Apache-2.0

// Package migrate decides how the Basic load balancers of a cluster become Standard ones while
// keeping every address. It is pure: it takes the recorded journal and a snapshot of Azure and
// returns the next writes. Each step follows from these two alone, so any process can continue.
//
// [Stock] builds the journal, [Preflight] checks whether a migration may start, [Next] returns the
// next steps and [Undo] those that revert it.
package migrate
