// SPDX-License-Identifier: Apache-2.0

// Package codec turns what Azure shows of load balancers, backend pools, public IPs, security
// groups, network interfaces, scale sets and Private Link Services into the vocabulary of lb, and back into the body of a write.
//
//	document.go      resources as Azure returned them, and how such a document is edited
//	loadbalancer_decode.go, loadbalancer_encode.go  load balancers, with all their parts
//	split.go         the pools of a load balancer, apart from it
//	pool_decode.go, pool_encode.go  backend pools
//	publicip.go       public IPs
//	securitygroup.go  network security groups
//	networkprofile.go  network interfaces, scale sets and their instances: the pools they are in
//	edit.go          those pools in a body
//	privatelink.go    Private Link Services, and the subnets of their addresses
//	etag.go          the etag of an answer that is not decoded
//
// A body is the document that was read, edited: all that a client may set and Weir does not change is sent
// back as it was, known to Weir or not. What only Azure sets is taken out of it.
package codec
