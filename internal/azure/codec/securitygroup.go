// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"slices"

	"weir.dev/weir/internal/lb"
)

type shownSecurityGroup struct {
	Etag       string `json:"etag"`
	Properties struct {
		State      string               `json:"provisioningState"`
		Subnets    []shownRef           `json:"subnets"`
		Interfaces []shownRef           `json:"networkInterfaces"`
		Rules      []*shownSecurityRule `json:"securityRules"`
	} `json:"properties"`
}

type shownSecurityRule struct {
	Name       string `json:"name"`
	Properties struct {
		Priority          int32        `json:"priority"`
		Direction         lb.Direction `json:"direction"`
		Access            lb.Access    `json:"access"`
		Protocol          string       `json:"protocol"`
		Source            string       `json:"sourceAddressPrefix"`
		Sources           []string     `json:"sourceAddressPrefixes"`
		Destination       string       `json:"destinationAddressPrefix"`
		Destinations      []string     `json:"destinationAddressPrefixes"`
		SourcePort        string       `json:"sourcePortRange"`
		SourcePorts       []string     `json:"sourcePortRanges"`
		DestinationPort   string       `json:"destinationPortRange"`
		DestinationPorts  []string     `json:"destinationPortRanges"`
		SourceGroups      []shownRef   `json:"sourceApplicationSecurityGroups"`
		DestinationGroups []shownRef   `json:"destinationApplicationSecurityGroups"`
	} `json:"properties"`
}

// DecodeSecurityGroup decodes a security group.
func DecodeSecurityGroup(id lb.ResourceID, doc Document) (lb.SecurityGroup, error) {
	var resource shownSecurityGroup
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.SecurityGroup{}, err
	}
	p := resource.Properties
	g := lb.SecurityGroup{
		ID: id, Etag: etag(resource.Etag), Provisioning: provisioning(p.State),
		Subnets: len(p.Subnets), Interfaces: len(p.Interfaces), Origin: doc,
	}
	for _, r := range p.Rules {
		if r != nil {
			g.Rules = append(g.Rules, r.decode())
		}
	}
	return g, nil
}

func (r shownSecurityRule) decode() lb.SecurityRule {
	p := r.Properties
	return lb.SecurityRule{
		Name: r.Name, Priority: p.Priority, Direction: p.Direction, Access: p.Access, Protocol: p.Protocol,
		Sources:          oneOrMany(p.Source, p.Sources),
		Destinations:     oneOrMany(p.Destination, p.Destinations),
		SourcePorts:      oneOrMany(p.SourcePort, p.SourcePorts),
		DestinationPorts: oneOrMany(p.DestinationPort, p.DestinationPorts),
		Grouped:          len(p.SourceGroups)+len(p.DestinationGroups) > 0,
	}
}

func oneOrMany(one string, many []string) []string {
	if one != "" {
		return append([]string{one}, many...)
	}
	return many
}

// EncodeSecurityGroup returns the body for g, like EncodeLoadBalancer.
func EncodeSecurityGroup(g lb.SecurityGroup) (any, error) {
	body, err := read(g.Origin)
	if err != nil {
		return nil, err
	}
	was, err := DecodeSecurityGroup(g.ID, g.Origin.(Document))
	if err != nil {
		return nil, err
	}
	without(body, "name")
	p := strip(body, "defaultSecurityRules", "flowLogs", "networkInterfaces", "resourceGuid", "subnets")
	parts(p, "securityRules", was.Rules, g.Rules, func(r lb.SecurityRule) string { return r.Name }, editSecurityRule)
	return body, nil
}

func editSecurityRule(part object, fresh bool, was, want lb.SecurityRule) {
	p := strip(part)
	set(fresh, p, "priority", was.Priority, want.Priority)
	say(fresh, p, "direction", was.Direction, want.Direction)
	say(fresh, p, "access", was.Access, want.Access)
	say(fresh, p, "protocol", was.Protocol, want.Protocol)
	sayOneOrMany(p, "sourceAddressPrefix", "sourceAddressPrefixes", was.Sources, want.Sources)
	sayOneOrMany(p, "destinationAddressPrefix", "destinationAddressPrefixes", was.Destinations, want.Destinations)
	sayOneOrMany(p, "sourcePortRange", "sourcePortRanges", was.SourcePorts, want.SourcePorts)
	sayOneOrMany(p, "destinationPortRange", "destinationPortRanges", was.DestinationPorts, want.DestinationPorts)
}

// sayOneOrMany sets one of two fields: Azure rejects tags and "*" in the plural one.
func sayOneOrMany(p object, one, many string, was, want []string) {
	switch {
	case slices.Equal(was, want):
	case len(want) == 1:
		delete(p, many)
		p[one] = want[0]
	default:
		delete(p, one)
		p[many] = append([]string{}, want...)
	}
}
