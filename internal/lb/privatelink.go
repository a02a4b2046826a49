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
	// Etag is empty for a new one.
	Etag     string
	Location string
	// ExtendedLocation is the edge zone; may be empty.
	ExtendedLocation string
	Provisioning     Provisioning
	Alias            string
	Frontends        []string
	// NAT are the source addresses of consumer flows.
	NAT           []NATAddress
	FQDNs         []string
	ProxyProtocol bool
	// Visibility are the subscriptions that may connect ("*" for all, none for role-based access),
	// AutoApproval those that need no approval.
	Visibility, AutoApproval []string
	// Connections are read-only.
	Connections []PrivateEndpointConnection
	Tags        map[string]string
	Origin      any
}

// NATAddress is an IP configuration of a Private Link Service.
type NATAddress struct {
	Name   string
	Subnet string
	// Address is assigned by Azure unless Static.
	Address netip.Addr
	Static  bool
	Primary bool
}

// PrivateEndpointConnection is a consumer's connection to a Private Link Service.
type PrivateEndpointConnection struct {
	Name         string
	Etag         string
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

// MaxNATAddresses is the limit per Private Link Service, MaxPrivateLinkServices the default limit
// per load balancer.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits
const (
	MaxNATAddresses        = 8
	MaxPrivateLinkServices = 8
)

// Subnet is a subnet of a virtual network, observed or desired.
type Subnet struct {
	Network  ResourceID
	Name     string
	Etag     string
	Prefixes []netip.Prefix
	// LinkPolicies is set while network policies block Private Link Services (Azure's default).
	LinkPolicies  bool
	SecurityGroup string
	Provisioning  Provisioning
	Origin        any
}

// String returns the ARM ID. Validate Network before use in a URL.
func (s Subnet) String() string { return s.Network.String() + "/subnets/" + s.Name }
