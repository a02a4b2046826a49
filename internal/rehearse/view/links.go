// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/rehearse"
)

// Connection is a private endpoint connection.
const Connection = "connection"

// link formats a Private Link Service; its tags name the owner.
func link(c rehearse.Changed[lb.PrivateLinkService]) Resource {
	id := cmp.Or(c.Is.ID, c.Was.ID)
	r := Resource{Kind: PrivateLinkService, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	r.Fields = differing(ofLink(c.Was, c.Was.Provisioning), ofLink(c.Is, c.Was.Provisioning))
	for _, was := range c.Was.Connections {
		if !slices.ContainsFunc(c.Is.Connections, func(is lb.PrivateEndpointConnection) bool { return is.Name == was.Name }) {
			r.Parts = append(r.Parts, Part{Kind: Connection, Name: was.Name + " of private endpoint " + was.Endpoint, Action: plan.Remove})
		}
	}
	if r.Service = privatelink.OwnerOf(c.Is); r.Service == "" {
		r.Service = privatelink.OwnerOf(c.Was)
	}
	r.Action = action(c.Was.Etag != "", c.Is.Etag != "", len(r.Fields)+len(r.Parts) > 0)
	return r
}

func ofLink(p lb.PrivateLinkService, was lb.Provisioning) []value {
	if p.Etag == "" {
		return nil
	}
	var nat []string
	for _, n := range p.NAT {
		text := chosen
		if n.Static {
			text = n.Address.String()
		}
		if nat = append(nat, text+" of "+n.Subnet[strings.LastIndex(n.Subnet, "/")+1:]); n.Primary {
			nat[len(nat)-1] += ", primary"
		}
	}
	return slices.Concat([]value{
		{name: "location", text: p.Location}, {name: "frontends", list: p.Frontends}, {name: "addresses", list: numbered(nat)},
		{name: "fqdns", list: p.FQDNs}, {name: "proxyProtocol", text: yes(p.ProxyProtocol)},
		{name: "visibility", list: p.Visibility}, {name: "autoApproval", list: p.AutoApproval},
	}, pairs("tags", p.Tags), state(p.Provisioning, was))
}

// numbered numbers duplicates, which the comparison would drop.
func numbered(all []string) []string {
	next := slices.Clone(all)
	for i, text := range all {
		n := 1
		for _, before := range all[:i] {
			if before == text {
				n++
			}
		}
		if n > 1 {
			next[i] = text + " (" + number(int32(n)) + ")" //nolint:gosec // of at most 8
		}
	}
	return next
}

func subnet(c rehearse.Changed[lb.Subnet]) Resource {
	r := Resource{Kind: Subnet, Name: c.Is.Name, ResourceGroup: c.Is.Network.ResourceGroup, ID: c.Is.String()}
	policies := func(on bool) []value {
		text := "Disabled"
		if on {
			text = "Enabled"
		}
		return []value{{name: "privateLinkServiceNetworkPolicies", text: text}}
	}
	r.Fields = differing(policies(c.Was.LinkPolicies), policies(c.Is.LinkPolicies))
	r.Action = action(true, true, len(r.Fields) > 0)
	return r
}
