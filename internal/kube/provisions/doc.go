// SPDX-License-Identifier: Apache-2.0

// Package provisions provisions clusters: the controller of Provisions. When an attempt begins, and
// what follows from its end, is decided by package provision.
//
//	room.go        what the room works with, its controller and its watches
//	installed.go   whether the cluster has what the room needs
//	reconcile.go   one look at a Provision: decide, record, act
//	status.go      what a status says, and the state that it holds
//	policy.go      the policy that counts for a Provision
//	record.go      writes of the status
//	attempts.go    the attempts under way, and how many there may be
//	attempt.go     one attempt: the target, its time, the log
//	steps.go       the steps of an attempt in their order, and which are left out
//	manifests.go   the step that applies objects
//	helm.go        the step that applies what a chart becomes
//	job.go         the step that runs a Job: made, taken over, awaited, given up
//	kubeconfig.go  how large a kubeconfig may be
//	migration.go   the step that has the target's own Weir migrate
//	prune.go       what no step wants any more
//	load.go        what all attempts share: memory, processor time and writes
//	objects.go     the sources of a step, and the names of objects in an inventory
//	decode.go      objects as sources have them, within bounds
//	ready.go       whether objects are ready, and the step that waits for one
//	lacks.go       kinds that are ready later than kstatus says
//	target.go      the way to the cluster that is provisioned
//	transport.go   what no target can do to this process
//	refusals.go    what targets answer that refuse, and what helps
//	kinds.go       the mappings of kinds to resources of the target
//	knock.go       whether a target answers again, while an attempt is waited for
//	spans.go       the spans of attempts and steps
//	figures.go     what metrics ask
package provisions
