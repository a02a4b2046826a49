// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
)

// ReportConnection is a private endpoint connection.
const ReportConnection = "connection"

// linkChange formats a Private Link Service; its tags name the owner.
func linkChange(c ResourceChange[lb.PrivateLinkService]) ResourceReport {
	id := cmp.Or(c.After.ID, c.Before.ID)
	r := ResourceReport{Kind: ReportPrivateLinkService, Name: id.Name, ResourceGroup: id.ResourceGroup, ID: id.String()}
	r.Fields = diffFields(linkFields(c.Before, c.Before.Provisioning), linkFields(c.After, c.Before.Provisioning))
	for _, old := range c.Before.Connections {
		if !slices.ContainsFunc(c.After.Connections, func(conn lb.PrivateEndpointConnection) bool { return conn.Name == old.Name }) {
			r.Parts = append(r.Parts, PartReport{Kind: ReportConnection, Name: old.Name + " of private endpoint " + old.Endpoint, Action: lb.ActionRemove})
		}
	}
	if r.Service = desired.OwnerOf(c.After); r.Service == "" {
		r.Service = desired.OwnerOf(c.Before)
	}
	r.Action = resourceAction(c.Before.Etag != "", c.After.Etag != "", len(r.Fields)+len(r.Parts) > 0)
	return r
}

func linkFields(p lb.PrivateLinkService, old lb.Provisioning) []fieldValue {
	if p.Etag == "" {
		return nil
	}
	var nat []string
	for _, n := range p.NAT {
		text := assignedByAzure
		if n.Static {
			text = n.Address.String()
		}
		if nat = append(nat, text+" of "+n.Subnet[strings.LastIndex(n.Subnet, "/")+1:]); n.Primary {
			nat[len(nat)-1] += ", primary"
		}
	}
	return slices.Concat([]fieldValue{
		{name: "location", text: p.Location}, {name: "edgeZone", text: p.ExtendedLocation}, {name: "frontends", list: p.Frontends}, {name: "addresses", list: numberDuplicates(nat)},
		{name: "fqdns", list: p.FQDNs}, {name: "proxyProtocol", text: formatTrue(p.ProxyProtocol)},
		{name: "visibility", list: p.Visibility}, {name: "autoApproval", list: p.AutoApproval},
	}, mapFields("tags", p.Tags), stateFields(p.Provisioning, old))
}

// numberDuplicates numbers duplicates, which the comparison would drop.
func numberDuplicates(duplicates []string) []string {
	next := slices.Clone(duplicates)
	for i, text := range duplicates {
		n := 1
		for _, before := range duplicates[:i] {
			if before == text {
				n++
			}
		}
		if n > 1 {
			next[i] = text + " (" + formatNumber(int32(n)) + ")" //nolint:gosec // of at most 8
		}
	}
	return next
}

func subnetChange(c ResourceChange[lb.Subnet]) ResourceReport {
	r := ResourceReport{Kind: ReportSubnet, Name: c.After.Name, ResourceGroup: c.After.Network.ResourceGroup, ID: c.After.String()}
	policies := func(on bool) []fieldValue {
		text := "Disabled"
		if on {
			text = "Enabled"
		}
		return []fieldValue{{name: "privateLinkServiceNetworkPolicies", text: text}}
	}
	r.Fields = diffFields(policies(c.Before.LinkPolicies), policies(c.After.LinkPolicies))
	r.Action = resourceAction(true, true, len(r.Fields) > 0)
	return r
}
