// SPDX-License-Identifier: Apache-2.0

// Package azure speaks to Azure Resource Manager: it reads and writes load balancers,
// their backend pools, public IPs and security groups, and turns whatever comes back into a fault.Fault.
// It is the only package that imports the Azure SDK.
//
//	options.go     New: endpoint, credential and settings → Client
//	pools.go       Get and Put
//	decode.go      what Azure shows → lb.Pool
//	encode.go      lb.Pool → what Azure shall be sent
//	interfaces.go  pools of network interfaces, and whose machines they are
//	balancers.go   load balancers as a whole
//	balancerdecode.go, balancerencode.go  from Azure's form, and into it
//	publicips.go   public IPs
//	publicipcodec.go       their form
//	securitygroups.go      network security groups
//	securitygroupcodec.go  their form
//	machines.go    the availability set of a virtual machine
//	raw.go         requests as somebody else has written them
//	sendable.go    what was read, without what only Azure sets
//	say.go         what is wanted, put into it
//	read.go        one resource, or all of a type in a resource group
//	target.go      what a request is about
//	write.go       guards a write and carries it out
//	wait.go        follows an accepted write until Azure is done
//	pipeline.go    which requests are retried, watched and kept with Resource Manager
//	gate.go        what a 429 closes, and what a closed gate refuses
//	turns.go       who goes first when a gate opens
//	rests.go       until when single resources want no call
//	fenced.go, fencedtransport.go  no write leaves once this process does not lead
//	bounds.go, weigh.go  what an answer may cost
//	fault.go       an error → fault.Answer → fault.Fault
//	message.go     an error → one line for people
//	endpoint.go    clouds, custom endpoints, the loopback rule
//	credential.go  azure.json's identities → a token credential
//	tracing.go     one OpenTelemetry span a request on the wire
//	redact.go      tokens and signed URLs leave every text
//
// Retries are the SDK's for 408, 500, 502, 503 and 504, and for a lost connection
// on a read. A 429, a 409, a 412 and a lost answer to a write surface after one
// request: the pool lane owns them.
//
// A Client is safe for concurrent use. It holds no goroutine and needs no closing.
package azure
