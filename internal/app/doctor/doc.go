// SPDX-License-Identifier: Apache-2.0

// Package doctor is weir doctor: whether Weir has what it needs, before it is installed and after. It reads alone.
//
//	doctor.go       which checks there are, and how long one may take
//	report.go       what they found, for people and for programs
//	apiserver.go    the API server, its version and its clock
//	definitions.go  the custom resource definitions, field by field
//	rights.go       what the controller may do in the cluster, verb by verb
//	state.go        what weir status says, and who else writes to the load balancers
//	versions.go     whether Azure rejects writes because of their api-version
//	azure.go        azure.json, what Azure answers, its clock, limits that are near, and what is not in use
//	actions.go      what the identity may do in Azure, action by action
package doctor
