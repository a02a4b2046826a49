// SPDX-License-Identifier: Apache-2.0

package lb

import "net/netip"

// ARM types of Private Link Services and virtual networks.
const (
	TypePrivateLinkService = "Microsoft.Network/privateLinkServices"
	TypeVirtualNetwork     = "Microsoft.Network/virtualNetworks"
)

// PrivateLinkService is a Private Link Service, observed or desired.
type PrivateLinkService struct {
	ID ResourceID
	// Etag is empty for one that was not read and has to be created.
	Etag         string
	Location     string
	Provisioning Provisioning
	// Alias is the generated name for consumers.
	Alias string
	// Frontends are ARM IDs of load balancer frontends.
	Frontends []string
	// NAT are the source addresses of consumer flows.
	NAT           []NATAddress
	FQDNs         []string
	ProxyProtocol bool
	// Visibility are the subscriptions that may request a connection; "*" means all, none means
	// role-based access. AutoApproval are those that need no approval.
	Visibility, AutoApproval []string
	// Connections are read-only.
	Connections []PrivateEndpointConnection
	Tags        map[string]string
	// Origin is the adapter's document, like that of a load balancer.
	Origin any
}

// NATAddress is an IP configuration of a Private Link Service.
type NATAddress struct {
	Name string
	// Subnet is an ARM ID.
	Subnet string
	// Address is assigned by Azure unless Static.
	Address netip.Addr
	Static  bool
	Primary bool
}

// PrivateEndpointConnection is a consumer's connection to a Private Link Service.
type PrivateEndpointConnection struct {
	Name string
	Etag string
	// Endpoint is the ARM ID of the consumer's private endpoint.
	Endpoint     string
	Status       ConnectionStatus
	Description  string
	Provisioning Provisioning
}

// ConnectionStatus is the approval status of a connection.
type ConnectionStatus string

// Connection statuses in Azure's spelling.
const (
	ConnectionPending  ConnectionStatus = "Pending"
	ConnectionApproved ConnectionStatus = "Approved"
	ConnectionRejected ConnectionStatus = "Rejected"
)

// MostNATAddresses is the limit per Private Link Service, MostPrivateLinkServices the default limit
// per load balancer.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const (
	MostNATAddresses        = 8
	MostPrivateLinkServices = 8
)

// Subnet is a subnet of a virtual network, observed or desired.
type Subnet struct {
	Network  ResourceID
	Name     string
	Etag     string
	Prefixes []netip.Prefix
	// LinkPolicies is set while network policies block Private Link Services, which is the default.
	LinkPolicies bool
	// SecurityGroup is the ARM ID of the network security group; may be empty.
	SecurityGroup string
	Provisioning  Provisioning
	Origin        any
}

// String returns the ARM ID. Validate Network before use in a URL.
func (s Subnet) String() string { return s.Network.String() + "/subnets/" + s.Name }
