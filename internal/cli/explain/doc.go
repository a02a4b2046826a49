// SPDX-License-Identifier: Apache-2.0

// Package explain implements weir explain: the path of a Service, Gateway, BackendPool or node to Azure, what is
// missing, what happened and what is next.
//
//	read.go     reads the objects with the caller's permissions
//	service.go  class, rules and next steps of a Service
//	gateway.go  listeners and routes of a Gateway
//	members.go  desired and observed members of a pool
//	health.go   what Azure's probes report of members
//	text.go     output
package explain
