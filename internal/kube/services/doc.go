// SPDX-License-Identifier: Apache-2.0

// Package services brings the load balancers of Services level. It watches Services and what they
// rest on, has package servicelb decide what happens next to each, and writes what that says.
//
//	reconciler.go     the Reconciler: which Services it serves, what makes their load balancers, and which controller runs
//	service.go        the controller keyed by Service; events of Services, BackendPools and namespaces → Services
//	endpoints.go      EndpointSlices: whether anything takes the traffic of a Service
//	portstatus.go     what the status says of ports that are refused
//	cluster.go        the cluster, as package servicelb asks for it
//	ledger.go         what is written for a Service: finalizer, records, addresses, condition
//	backendpools.go   the BackendPools that Weir makes for a Service
//	nodes.go          which nodes the BackendPools of nodes select, where nodes are placed
//	events.go         what people are told
//	dryrun.go         what would change, where a Service is to stay as it is
//	reached.go        the cluster, as package balancer asks for it, and which addresses of a pool others have put there
//	sharers.go        what Services ask of the Private Link Service of a frontend that they share
//	holds.go          what pools of network interfaces hold
//	migrated.go       what Services show, where Basic load balancers become Standard ones
//	leftovers.go      what is named in Azure as a Service's, and no Service has it
package services
