// SPDX-License-Identifier: Apache-2.0

// Package jobs has the Jobs by which steps of Provisions run containers in targets. Which attempt makes one, and
// waits for it, is decided elsewhere.
//
//	spec.go    what such a Job is
//	seen.go    what is seen of one, and how it becomes that of another attempt
//	pod.go     how its pod is, and what it has failed for, in words
//	log.go     what its container says, without secrets
//	listen.go  what one at work has said so far
package jobs
