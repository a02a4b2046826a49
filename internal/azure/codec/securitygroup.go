// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"slices"

	"weir.dev/weir/internal/lb"
)

type armSecurityGroup struct {
	Etag       string `json:"etag"`
	Properties struct {
		State      string             `json:"provisioningState"`
		Subnets    []armReference     `json:"subnets"`
		Interfaces []armReference     `json:"networkInterfaces"`
		Rules      []*armSecurityRule `json:"securityRules"`
	} `json:"properties"`
}

type armSecurityRule struct {
	Name       string `json:"name"`
	Properties struct {
		Priority          int32          `json:"priority"`
		Direction         lb.Direction   `json:"direction"`
		Access            lb.Access      `json:"access"`
		Protocol          string         `json:"protocol"`
		Source            string         `json:"sourceAddressPrefix"`
		Sources           []string       `json:"sourceAddressPrefixes"`
		Destination       string         `json:"destinationAddressPrefix"`
		Destinations      []string       `json:"destinationAddressPrefixes"`
		SourcePort        string         `json:"sourcePortRange"`
		SourcePorts       []string       `json:"sourcePortRanges"`
		DestinationPort   string         `json:"destinationPortRange"`
		DestinationPorts  []string       `json:"destinationPortRanges"`
		SourceGroups      []armReference `json:"sourceApplicationSecurityGroups"`
		DestinationGroups []armReference `json:"destinationApplicationSecurityGroups"`
	} `json:"properties"`
}

// DecodeSecurityGroup decodes a security group.
func DecodeSecurityGroup(id lb.ResourceID, doc Document) (lb.SecurityGroup, error) {
	var resource armSecurityGroup
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.SecurityGroup{}, err
	}
	p := resource.Properties
	g := lb.SecurityGroup{
		ID: id, Etag: etagOrAny(resource.Etag), Provisioning: provisioningState(p.State),
		Subnets: len(p.Subnets), Interfaces: len(p.Interfaces), Origin: doc,
	}
	for _, r := range p.Rules {
		if r != nil {
			g.Rules = append(g.Rules, r.toSecurityRule())
		}
	}
	return g, nil
}

func (r armSecurityRule) toSecurityRule() lb.SecurityRule {
	p := r.Properties
	return lb.SecurityRule{
		Name: r.Name, Priority: p.Priority, Direction: p.Direction, Access: p.Access, Protocol: p.Protocol,
		Sources:          mergeValues(p.Source, p.Sources),
		Destinations:     mergeValues(p.Destination, p.Destinations),
		SourcePorts:      mergeValues(p.SourcePort, p.SourcePorts),
		DestinationPorts: mergeValues(p.DestinationPort, p.DestinationPorts),
		Grouped:          len(p.SourceGroups)+len(p.DestinationGroups) > 0,
	}
}

func mergeValues(single string, many []string) []string {
	if single != "" {
		return append([]string{single}, many...)
	}
	return many
}

// EncodeSecurityGroup returns the body for g, like EncodeLoadBalancer.
func EncodeSecurityGroup(g lb.SecurityGroup) (any, error) {
	body, err := parseOrigin(g.Origin)
	if err != nil {
		return nil, err
	}
	old, err := DecodeSecurityGroup(g.ID, g.Origin.(Document))
	if err != nil {
		return nil, err
	}
	deleteKeys(body, "name")
	p := removeReadOnly(body, "defaultSecurityRules", "flowLogs", "networkInterfaces", "resourceGuid", "subnets")
	setItems(p, "securityRules", old.Rules, g.Rules, func(r lb.SecurityRule) string { return r.Name }, editSecurityRule)
	return body, nil
}

func editSecurityRule(part *jsonObject, fresh bool, old, want lb.SecurityRule) {
	p := removeReadOnly(part)
	setValue(fresh, p, "priority", old.Priority, want.Priority)
	setString(fresh, p, "direction", old.Direction, want.Direction)
	setString(fresh, p, "access", old.Access, want.Access)
	setString(fresh, p, "protocol", old.Protocol, want.Protocol)
	setOneOrMany(p, "sourceAddressPrefix", "sourceAddressPrefixes", old.Sources, want.Sources)
	setOneOrMany(p, "destinationAddressPrefix", "destinationAddressPrefixes", old.Destinations, want.Destinations)
	setOneOrMany(p, "sourcePortRange", "sourcePortRanges", old.SourcePorts, want.SourcePorts)
	setOneOrMany(p, "destinationPortRange", "destinationPortRanges", old.DestinationPorts, want.DestinationPorts)
}

// setOneOrMany sets one of two fields: Azure rejects tags and "*" in the plural one.
func setOneOrMany(p *jsonObject, singular, plural string, old, want []string) {
	switch {
	case slices.Equal(old, want):
	case len(want) == 1:
		deleteKeys(p, plural)
		p.set(singular, want[0])
	default:
		deleteKeys(p, singular)
		p.set(plural, append([]string{}, want...))
	}
}
