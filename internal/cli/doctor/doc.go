// SPDX-License-Identifier: Apache-2.0

// Package doctor implements weir doctor: read-only checks of Weir's requirements, before or after
// installation.
//
//	doctor.go       the list of checks and their timeout
//	report.go       results as text and JSON
//	apiserver.go    version and clock of the API server
//	definitions.go  CRDs, field by field
//	permissions.go  RBAC of the controller, verb by verb
//	installation.go Deployment, pods, Secret, Lease and version of the controller
//	admission.go    admission policies
//	state.go        the result of weir status, and other controllers of the load balancers
//	versions.go     writes that Azure rejects because of their api-version
//	azure.go        azure.json, reads from Azure, its clock, unused resources
//	limits.go       limits of load balancers and the security group
//	zones.go        zones of frontends and public IPs, and the security group
//	actions.go      actions of the identity in Azure
package doctor
