// SPDX-License-Identifier: Apache-2.0

// Package azure is the Azure Resource Manager client: it reads and writes load balancers, backend
// pools, public IPs and security groups, and converts errors into *armerror.Fault. Package codec
// converts Azure's JSON. Only these packages import the Azure SDK.
//
//	options.go     New: endpoint, credential and settings → Client
//	pools.go       backend pools
//	interfaces.go  pools of network interfaces and their machines
//	interfacecache.go      caches the machines of interfaces: a lookup lists a whole resource group
//	resources.go   load balancers, public IPs and network security groups
//	machines.go    the availability set of a virtual machine
//	machineclient.go       pools of network interfaces, scale set models and instances
//	privatelinks.go        Private Link Services, their connections, and subnets
//	regions.go, rights.go, usages.go       zones, permissions and quotas of a subscription
//	plain.go, plainresource.go     documents that machineclient.go and privatelinks.go decode
//	health.go      health of the members of a rule
//	raw.go         prebuilt requests
//	read.go        get and list
//	target.go      the resource of a request
//	tenants.go     the token of a request, with a network in another tenant
//	write.go       guarded writes
//	versions.go    the api-version of a write
//	wait.go        polls an accepted write
//	early.go        detects the end of a write by reading the resource
//	policies.go    retries, observation, and the pinning of requests to Resource Manager
//	gate.go        gates that a 429 closes
//	writes.go      counts writes and reads the remaining quota
//	admission.go   order of callers after a gate opens
//	quota.go       when each of them may start
//	retry_after.go       Retry-After per resource
//	leader.go      no write without leadership
//	limits.go      response limits
//	jsoncost.go    the cost of decoding a response
//	cloud.go       endpoints of Azure's clouds, and where a token may be sent
//	fence.go       a transport that sends no byte of a write after leadership is lost
//	renewal.go     renews a token that Azure rejects
//	redact.go      removes credentials from text and requests
//	writeend.go    when a read shows the end of a write
//	apiversion.go  selects an api-version
//	fault.go       error → armerror.Failure → armerror.Fault
//	message.go     error → one-line message
//	credential.go  identities of azure.json → token credential
//	tracing.go     span attributes
//	spans.go       the SDK's tracing → OpenTelemetry
//
// The SDK retries 408, 500, 502, 503 and 504, connections lost during a read, and a 401 with a new
// token. A 429, 409, 412 or a lost response to a write is returned after one request; the pool
// worker retries it.
//
// A Client is safe for concurrent use. It has no goroutines and needs no closing.
package azure
