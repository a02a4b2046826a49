// SPDX-License-Identifier: Apache-2.0

// Package provision decides when a cluster is provisioned again that could not be provisioned: the
// fourth retry layer, whose unit is a whole attempt.
//
//	policy.go  how it is retried, and whose word each value is
//	table.go   what a policy means: the wait before each retry, and how many there are in a year
//	state.go   what is on record of a Provision
//	next.go    what is done next
//	knock.go   when a target is knocked at during a wait, and what follows if it answers again
//	end.go     what follows from the end of an attempt
//	order.go   which step is done when
//	asked.go   what people ask: cancel, retry now, reset
//	digest.go  a digest of what is wanted
//	job.go     what an attempt does about the Job of a step
//	migration.go what an attempt does about the migration of a target
//	attempt.go the log of an attempt: bounded, and without secrets
//	redaction.go secrets in texts
//
// All of it is pure. When the next attempt begins follows from what is on record and from the
// policy: no memory of a process counts, so that a restart loses and doubles nothing.
package provision
