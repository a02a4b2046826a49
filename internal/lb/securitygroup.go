// SPDX-License-Identifier: Apache-2.0

package lb

import "slices"

// SecurityGroup is a network security group as Azure shows it, or as it shall become.
type SecurityGroup struct {
	ID           ResourceID
	Etag         string
	Provisioning Provisioning
	Rules        []SecurityRule
	// Subnets and Interfaces are how many of them the group is on. One that is on none
	// guards nothing.
	Subnets, Interfaces int
	// Origin is the adapter's own decoding of what it read, as that of a load balancer.
	Origin any
}

// Limits of a security group: rules, and the addresses and ranges of all its rules, which
// count separately for sources and for destinations.
// https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits#azure-networking-limits
const (
	MostSecurityRules    = 1000
	MostSecurityPrefixes = 4000
)

// Direction is that of the flows which a security rule judges.
type Direction string

// The directions, as Azure spells them.
const (
	Inbound  Direction = "Inbound"
	Outbound Direction = "Outbound"
)

// Access is what a security rule says of a flow.
type Access string

// The accesses, as Azure spells them.
const (
	Allow Access = "Allow"
	Deny  Access = "Deny"
)

// Any stands for every address, port or protocol in a security rule.
const Any = "*"

// SecurityRule is a rule of a security group. Of two rules that match a flow, the one with
// the lower number as its priority decides.
type SecurityRule struct {
	Name      string
	Priority  int32
	Direction Direction
	Access    Access
	// Protocol is Tcp, Udp, or another one that Azure knows; Any for all.
	Protocol string
	// Sources and Destinations are CIDRs, addresses, one service tag, or Any.
	Sources, Destinations []string
	// SourcePorts and DestinationPorts are numbers, ranges such as 80-90, or Any.
	SourcePorts, DestinationPorts []string
	// Grouped is true if application security groups stand for addresses.
	Grouped bool
}

// Same reports whether two rules say the same, in the same words.
func (r SecurityRule) Same(other SecurityRule) bool {
	return r.Name == other.Name && r.Priority == other.Priority && r.Direction == other.Direction &&
		r.Access == other.Access && r.Protocol == other.Protocol && r.Grouped == other.Grouped &&
		slices.Equal(r.Sources, other.Sources) && slices.Equal(r.Destinations, other.Destinations) &&
		slices.Equal(r.SourcePorts, other.SourcePorts) && slices.Equal(r.DestinationPorts, other.DestinationPorts)
}
