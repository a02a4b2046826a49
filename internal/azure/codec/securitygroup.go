// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// DecodeSecurityGroup returns a security group as the rooms know it; Origin keeps what they do not.
func DecodeSecurityGroup(id lb.ResourceID, shown *armnetwork.SecurityGroup) lb.SecurityGroup {
	g := lb.SecurityGroup{ID: id, Etag: etag(shown.Etag), Origin: shown}
	p := shown.Properties
	if p == nil {
		return g
	}
	g.Provisioning = provisioning(Value(p.ProvisioningState))
	g.Subnets, g.Interfaces = len(p.Subnets), len(p.NetworkInterfaces)
	for _, r := range present(p.SecurityRules) {
		g.Rules = append(g.Rules, decodeSecurityRule(r))
	}
	return g
}

func decodeSecurityRule(shown *armnetwork.SecurityRule) lb.SecurityRule {
	r := lb.SecurityRule{Name: Value(shown.Name)}
	p := shown.Properties
	if p == nil {
		return r
	}
	r.Priority, r.Direction = Value(p.Priority), lb.Direction(Value(p.Direction))
	r.Access, r.Protocol = lb.Access(Value(p.Access)), string(Value(p.Protocol))
	r.Sources = oneOrMany(p.SourceAddressPrefix, p.SourceAddressPrefixes)
	r.Destinations = oneOrMany(p.DestinationAddressPrefix, p.DestinationAddressPrefixes)
	r.SourcePorts = oneOrMany(p.SourcePortRange, p.SourcePortRanges)
	r.DestinationPorts = oneOrMany(p.DestinationPortRange, p.DestinationPortRanges)
	r.Grouped = len(p.SourceApplicationSecurityGroups)+len(p.DestinationApplicationSecurityGroups) > 0
	return r
}

// oneOrMany reads what has a field for one and a field for many.
func oneOrMany(one *string, many []*string) []string {
	if Value(one) != "" {
		return append([]string{*one}, values(many)...)
	}
	return values(many)
}

// EncodeSecurityGroup returns the body that makes a group what g says, as EncodeLoadBalancer
// does for a load balancer.
func EncodeSecurityGroup(g lb.SecurityGroup, read *armnetwork.SecurityGroup) armnetwork.SecurityGroup {
	next := clone(read)
	next.Etag, next.Name, next.Type = nil, nil, nil
	p := clone(next.Properties)
	p.DefaultSecurityRules, p.FlowLogs, p.NetworkInterfaces, p.Subnets = nil, nil, nil, nil
	p.ProvisioningState, p.ResourceGUID = nil, nil
	p.SecurityRules = parts(g.Rules, p.SecurityRules,
		func(r lb.SecurityRule) string { return r.Name }, func(r *armnetwork.SecurityRule) *string { return r.Name }, encodeSecurityRule)
	next.Properties = p
	return *next
}

func encodeSecurityRule(r lb.SecurityRule, read *armnetwork.SecurityRule) *armnetwork.SecurityRule {
	next := clone(read)
	was, fresh := known(read, decodeSecurityRule, &next.Name, r.Name)
	next.Etag, next.Type = nil, nil
	p := clone(next.Properties)
	p.ProvisioningState = nil
	set(fresh, &p.Priority, was.Priority, r.Priority)
	say(fresh, &p.Direction, was.Direction, r.Direction)
	say(fresh, &p.Access, was.Access, r.Access)
	say(fresh, &p.Protocol, was.Protocol, r.Protocol)
	sayOneOrMany(&p.SourceAddressPrefix, &p.SourceAddressPrefixes, was.Sources, r.Sources)
	sayOneOrMany(&p.DestinationAddressPrefix, &p.DestinationAddressPrefixes, was.Destinations, r.Destinations)
	sayOneOrMany(&p.SourcePortRange, &p.SourcePortRanges, was.SourcePorts, r.SourcePorts)
	sayOneOrMany(&p.DestinationPortRange, &p.DestinationPortRanges, was.DestinationPorts, r.DestinationPorts)
	next.Properties = p
	return next
}

// sayOneOrMany puts a list into the one field or the other: Azure takes no tag and no "*"
// in that for many.
func sayOneOrMany(one **string, many *[]*string, was, is []string) {
	if slices.Equal(was, is) {
		return
	}
	*one, *many = nil, nil
	if len(is) == 1 {
		*one = &is[0]
		return
	}
	*many = pointers(is)
}
