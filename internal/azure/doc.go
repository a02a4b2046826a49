// SPDX-License-Identifier: Apache-2.0

// Package azure speaks to Azure Resource Manager: it reads and writes load balancers,
// their backend pools, public IPs and security groups, and turns whatever comes back into a fault.Fault.
// Package codec has Azure's forms of them, machines asks for what makes machines members of pools of
// network interfaces, cloud knows where Azure answers, weight what an answer takes to decode, and
// redact keeps secrets out of texts; these alone import the Azure SDK.
//
//	options.go     New: endpoint, credential and settings → Client
//	pools.go       Get and Put
//	interfaces.go  pools of network interfaces, and whose machines they are
//	balancers.go   load balancers as a whole
//	publicips.go   public IPs
//	securitygroups.go      network security groups
//	machines.go    the availability set of a virtual machine
//	plain.go       requests about resources that packages machines and privatelinks decode
//	raw.go         requests as somebody else has written them
//	read.go        one resource, or all of a type in a resource group
//	target.go      what a request is about
//	write.go       guards a write and carries it out
//	versions.go    which api-version a write has; package apiversion decides it
//	wait.go        follows an accepted write until Azure is done
//	look.go        sees that earlier, by what was written; package look says what shows it
//	pipeline.go    which requests are retried, watched and kept with Resource Manager
//	gate.go        what a 429 closes, and what a closed gate refuses
//	writes.go      how many writes leave, and how many more Azure says it takes
//	turns.go       who goes first when a gate opens; package quota hands out the turns
//	rests.go       until when single resources want no call
//	fenced.go    no write leaves once this process does not lead; package fence sends the rest
//	bounds.go    what an answer may cost; package weight says what one takes
//	fault.go       an error → fault.Answer → fault.Fault
//	message.go     an error → one line for people
//	credential.go  azure.json's identities → a token credential
//	tracing.go     what a span says of a request
//
// Retries are the SDK's for 408, 500, 502, 503 and 504, and for a lost connection
// on a read. A 429, a 409, a 412 and a lost answer to a write surface after one
// request: the pool lane owns them.
//
// A Client is safe for concurrent use. It holds no goroutine and needs no closing.
package azure
