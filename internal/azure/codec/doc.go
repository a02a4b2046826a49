// SPDX-License-Identifier: Apache-2.0

// Package codec turns what Azure shows of load balancers, backend pools, public IPs, security
// groups, network interfaces, scale sets and Private Link Services into the vocabulary of lb, and back into the body of a write.
//
//	loadbalancer_decode.go, loadbalancer_encode.go  load balancers, with all their parts
//	pool_decode.go, pool_encode.go, pool_members.go  backend pools
//	pools_json.go, apart.go  backend pools, decoded without the SDK where there are many
//	publicip.go       public IPs
//	securitygroup.go  network security groups
//	networkprofile.go  network interfaces, scale sets and their instances: the pools they are in
//	privatelink.go    Private Link Services, and the subnets of their addresses
//	edit.go           bodies that are edited as JSON
//	etag.go          the etag of an answer that is not decoded
//	sendable.go       what was read, without what only Azure sets
//	say.go            what is wanted, put into it
//
// A body is built anew from what was read: all that a client may set and lb has no word for is sent
// back as it was.
package codec
