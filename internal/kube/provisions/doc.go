// SPDX-License-Identifier: Apache-2.0

// Package provisions is the controller for Provision objects. Package provision decides when an
// attempt starts and what follows from its result; this package runs attempts against target
// clusters.
//
// A reconcile decides from the cached Provision, records the decision in the status and acts on it.
// An attempt runs its steps in a goroutine of its own, in dependency order.
package provisions
