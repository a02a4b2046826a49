// SPDX-License-Identifier: Apache-2.0

// Package policy decides when a failed Provision is retried. It is the fourth retry layer; its
// unit is a whole attempt.
//
// The package is pure. Decisions follow from the recorded state, the policy and the time, so that a
// restart neither loses nor repeats an attempt.
package policy
