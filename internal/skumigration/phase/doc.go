// SPDX-License-Identifier: Apache-2.0

// Package phase decides how the Basic load balancers of a cluster become Standard ones while
// keeping every address. It is pure: it takes the recorded journal and a snapshot of Azure and
// returns the next writes. Each step follows from these two alone, so any process can continue.
//
// [BuildJournal] builds the journal, [RunPreflight] checks whether a migration may start, [NextSteps] returns the
// next steps and [NextUndoSteps] those that revert it.
package phase
