// SPDX-License-Identifier: Apache-2.0

// Package poolattempt is one attempt to bring a backend pool level: what is asked of Azure, of the
// cluster and of the ledger, in which order, and what a fresh read can make good before it ends.
//
//	ports.go       Config: what an attempt asks of Azure, the cluster, the ledger and the machines' lanes
//	attempt.go     Get → prepare → record → Put
//	members.go     pools of network interfaces, whose members others write
//	secondtry.go   what a fresh read can make good within the attempt
//
// What is written is decided in poolwrite. When there is an attempt, for what and of how many pools at
// once, and what becomes of its operations, is the lane's: see poolupdate.
package poolattempt
