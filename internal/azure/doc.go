// SPDX-License-Identifier: Apache-2.0

// Package azure is the Azure Resource Manager client: it reads and writes load balancers, backend
// pools, public IPs and security groups, and converts errors into *armerror.Fault. Package codec
// converts Azure's JSON, machines handles network interfaces and scale sets, cloud the endpoint,
// weight the decoding cost of a response, redact secrets in text. Only these packages import the
// Azure SDK.
//
//	options.go     New: endpoint, credential and settings → Client
//	pools.go       backend pools
//	interfaces.go  pools of network interfaces and their machines
//	balancers.go   whole load balancers
//	publicips.go   public IPs
//	securitygroups.go      network security groups
//	machines.go    the availability set of a virtual machine
//	plain.go       documents that packages machines and privatelinks decode
//	health.go      health of the members of a rule
//	raw.go         prebuilt requests
//	read.go        get and list
//	target.go      the resource of a request
//	write.go       guarded writes
//	versions.go    the api-version of a write; see package apiversion
//	wait.go        polls an accepted write
//	early.go        detects the end of a write by reading the resource; see package look
//	policies.go    retries, observation, and the pinning of requests to Resource Manager
//	gate.go        gates that a 429 closes
//	writes.go      counts writes and reads the remaining quota
//	admission.go   order of callers after a gate opens
//	quota.go       when each of them may start
//	retry_after.go       Retry-After per resource
//	leader.go      no write without leadership; see package fence
//	limits.go      response limits; see package weight
//	fault.go       error → armerror.Failure → armerror.Fault
//	message.go     error → one-line message
//	credential.go  identities of azure.json → token credential
//	tracing.go     span attributes
//	spans.go       the SDK's tracing → OpenTelemetry
//
// The SDK retries 408, 500, 502, 503 and 504, and connections lost during a read. A 429, 409, 412
// or a lost response to a write is returned after one request; the pool worker retries it.
//
// A Client is safe for concurrent use. It has no goroutines and needs no closing.
package azure
