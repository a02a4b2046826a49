// SPDX-License-Identifier: Apache-2.0

package lb

import "slices"

// SecurityGroup is a network security group, observed or desired.
type SecurityGroup struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	Rules        []SecurityRule
	// Subnets and Interfaces count its associations.
	Subnets, Interfaces int
	Origin              any
}

// Limits of rules per group, and of addresses over all rules, separately for sources and
// destinations.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#azure-networking-limits
const (
	MaxSecurityRules    = 1000
	MaxSecurityPrefixes = 4000
)

// Direction is the direction of matched flows.
type Direction string

// Directions in Azure's spelling.
const (
	Inbound  Direction = "Inbound"
	Outbound Direction = "Outbound"
)

// Access is the action of a security rule.
type Access string

// Accesses in Azure's spelling.
const (
	Allow Access = "Allow"
	Deny  Access = "Deny"
)

// Any matches every address, port or protocol.
const Any = "*"

// SecurityRule is a rule of a security group. The lowest matching priority applies.
type SecurityRule struct {
	Name      string
	Priority  int32
	Direction Direction
	Access    Access
	// Protocol is Tcp, Udp, another Azure protocol, or Any.
	Protocol string
	// Sources and Destinations are CIDRs, addresses, one service tag, or Any.
	Sources, Destinations []string
	// SourcePorts and DestinationPorts are numbers, ranges such as 80-90, or Any.
	SourcePorts, DestinationPorts []string
	// Grouped is set if the rule uses application security groups instead of addresses.
	Grouped bool
}

// Equal reports whether two rules are identical.
func (r SecurityRule) Equal(other SecurityRule) bool {
	return r.Name == other.Name && r.Priority == other.Priority && r.Direction == other.Direction &&
		r.Access == other.Access && r.Protocol == other.Protocol && r.Grouped == other.Grouped &&
		slices.Equal(r.Sources, other.Sources) && slices.Equal(r.Destinations, other.Destinations) &&
		slices.Equal(r.SourcePorts, other.SourcePorts) && slices.Equal(r.DestinationPorts, other.DestinationPorts)
}
