// SPDX-License-Identifier: Apache-2.0

// Package codec converts Azure's JSON of load balancers, backend pools, public IPs, security
// groups, network interfaces, scale sets and Private Link Services into types of package lb, and
// back.
//
//	document.go      documents and how they are edited
//	object.go        editable objects; what is not touched remains text
//	objecttext.go    the text of an edited object
//	textfields.go    fields of a text, and the header of a resource
//	loadbalancer_decode.go, loadbalancer_encode.go  load balancers
//	split.go         separates the pools from a load balancer
//	pool_decode.go, pool_scan.go, pool_encode.go  backend pools
//	publicip.go       public IPs
//	securitygroup.go  network security groups
//	networkprofile.go  network interfaces, scale sets and instances: their pools
//	edit.go          pools in a body
//	privatelink.go    Private Link Services and subnets
//	etag.go          the etag of an undecoded response
//
// A body is an edited copy of the document that was read: writable properties that Weir does not
// change, including unknown ones, are sent back unchanged. Read-only properties are removed.
package codec
