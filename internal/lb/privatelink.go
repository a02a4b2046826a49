// SPDX-License-Identifier: Apache-2.0

package lb

import "net/netip"

// The types of what publishes a frontend to other networks, and of the network itself.
const (
	TypePrivateLinkService = "Microsoft.Network/privateLinkServices"
	TypeVirtualNetwork     = "Microsoft.Network/virtualNetworks"
)

// PrivateLinkService is a Private Link Service as Azure shows it, or as it shall become.
type PrivateLinkService struct {
	ID ResourceID
	// Etag is empty if it was never read: it does not exist yet.
	Etag         string
	Location     string
	Provisioning Provisioning
	// Alias is what consumers ask for it by; Azure makes it.
	Alias string
	// Frontends are ARM ids of frontends of load balancers.
	Frontends []string
	// NAT are the addresses from which consumers' flows reach the frontend.
	NAT           []NATAddress
	FQDNs         []string
	ProxyProtocol bool
	// Visibility are the subscriptions that may ask for a connection; "*" is all, and none leaves
	// it to roles. AutoApproval are those of them that need not wait for somebody's word.
	Visibility, AutoApproval []string
	// Connections are those of private endpoints; a write does not change them.
	Connections []PrivateEndpointConnection
	Tags        map[string]string
	// Origin is the adapter's own decoding of what it read, as that of a load balancer.
	Origin any
}

// NATAddress is an IP configuration of a Private Link Service.
type NATAddress struct {
	Name string
	// Subnet is an ARM id.
	Subnet string
	// Address is fixed if it is Static; else it is Azure's to choose, and says nothing about what
	// is wanted.
	Address netip.Addr
	Static  bool
	Primary bool
}

// PrivateEndpointConnection is a consumer's connection to a Private Link Service.
type PrivateEndpointConnection struct {
	Name string
	Etag string
	// Endpoint is the ARM id of the private endpoint, which is its owner's.
	Endpoint     string
	Status       ConnectionStatus
	Description  string
	Provisioning Provisioning
}

// ConnectionStatus says whether flows of a private endpoint are let through.
type ConnectionStatus string

// The states of connections, as Azure spells them.
const (
	ConnectionPending  ConnectionStatus = "Pending"
	ConnectionApproved ConnectionStatus = "Approved"
	ConnectionRejected ConnectionStatus = "Rejected"
)

// MostNATAddresses is how many a Private Link Service has at most, and MostPrivateLinkServices how
// many a load balancer has unless Azure has lifted it for the subscription.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const (
	MostNATAddresses        = 8
	MostPrivateLinkServices = 8
)

// Subnet is a subnet of a virtual network as Azure shows it, or as it shall become.
type Subnet struct {
	Network  ResourceID
	Name     string
	Etag     string
	Prefixes []netip.Prefix
	// LinkPolicies is true while network policies keep Private Link Services out of it, which is
	// how a subnet is made.
	LinkPolicies bool
	// SecurityGroup is the ARM id of the network security group that it has; empty if it has none.
	SecurityGroup string
	Provisioning  Provisioning
	Origin        any
}

// String returns the ARM resource id. Only that of a validated network is fit for a URL.
func (s Subnet) String() string { return s.Network.String() + "/subnets/" + s.Name }
