// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// EncodeLoadBalancer returns the body for b. Unchanged properties are sent back as read.
func EncodeLoadBalancer(b lb.LoadBalancer, network string) (any, error) {
	body, was := object{}, lb.LoadBalancer{}
	if doc, ok := b.Origin.(Document); ok { // read again, with the pools
		decoded, err := DecodeLoadBalancer(b.ID, doc)
		if err != nil {
			return nil, err
		}
		b.Origin = decoded.Origin
	}
	origin, known := b.Origin.(BalancerDocument)
	if known {
		var err error
		if body, err = origin.object(); err != nil {
			return nil, err
		}
		if was, err = decodeBalancer(b.ID, origin.Document); err != nil {
			return nil, err
		}
	}
	without(body, "name")
	say(!known, body, "location", was.Location, b.Location)
	if !known || was.SKU != b.SKU {
		within(body, "sku")["name"] = b.SKU
	}
	editExtendedLocation(body, was.ExtendedLocation, b.ExtendedLocation)
	if !maps.Equal(was.Tags, b.Tags) {
		editTags(body, b.Tags)
	}
	p := strip(body, "resourceGuid")
	withoutAll(p, "outboundRules")
	withoutAll(p, "inboundNatRules", "backendIPConfiguration")
	withoutAll(p, "inboundNatPools")
	parts(p, "frontendIPConfigurations", was.Frontends, b.Frontends, func(f lb.Frontend) string { return f.Name }, editFrontend)
	parts(p, "probes", was.Probes, b.Probes, func(p lb.Probe) string { return p.Name }, editProbe)
	parts(p, "loadBalancingRules", was.Rules, b.Rules, func(r lb.Rule) string { return r.Name }, func(part object, fresh bool, was, want lb.Rule) {
		editRule(b.ID.String(), part, fresh, was, want)
	})
	pools := make([]json.RawMessage, 0, len(b.Pools))
	for _, pool := range b.Pools {
		text, err := encodePart(pool, origin, network)
		if err != nil {
			return nil, err
		}
		pools = append(pools, text)
	}
	p["backendAddressPools"] = pools
	return body, nil
}

func editExtendedLocation(body object, was, want string) {
	switch {
	case was == want:
	case want == "":
		delete(body, "extendedLocation")
	default:
		body["extendedLocation"] = object{"name": want, "type": "EdgeZone"}
	}
}

func editFrontend(part object, fresh bool, was, f lb.Frontend) {
	p := strip(part, "inboundNatPools", "inboundNatRules", "loadBalancingRules", "outboundRules")
	if len(f.Zones) > 0 && !slices.Equal(was.Zones, f.Zones) { // an empty list requests no zones
		part["zones"] = f.Zones
	}
	if !strings.EqualFold(was.PublicIP, f.PublicIP) {
		delete(p, "publicIPPrefix") // address and prefix are mutually exclusive
	}
	refer(p, "publicIPAddress", was.PublicIP, f.PublicIP)
	refer(p, "subnet", was.Subnet, f.Subnet)
	moves := !strings.EqualFold(was.Subnet, f.Subnet)
	if moves || was.Static != f.Static || f.Static && was.PrivateIP != f.PrivateIP {
		without(p, "privateIPAddress", "privateIPAllocationMethod")
		if f.Static {
			p["privateIPAddress"] = f.PrivateIP.String()
		}
		if f.Static || f.Subnet != "" {
			p["privateIPAllocationMethod"] = allocation(f.Static)
		}
	}
	if f.Subnet != "" {
		say(fresh || moves, p, "privateIPAddressVersion", was.Family, f.Family)
	}
}

func editProbe(part object, fresh bool, was, want lb.Probe) {
	p := strip(part, "loadBalancingRules")
	say(fresh, p, "protocol", was.Protocol, want.Protocol)
	say(fresh, p, "requestPath", was.Path, want.Path)
	set(fresh, p, "port", was.Port, want.Port)
	set(fresh, p, "intervalInSeconds", was.IntervalSeconds, want.IntervalSeconds)
	set(fresh, p, "probeThreshold", was.Threshold, want.Threshold)
	set(fresh, p, "numberOfProbes", was.Threshold, want.Threshold)
}

func editRule(id string, part object, fresh bool, was, want lb.Rule) {
	p := strip(part)
	to := func(collection, name string) string {
		if name == "" {
			return ""
		}
		return id + "/" + collection + "/" + name
	}
	refer(p, "frontendIPConfiguration", to("frontendIPConfigurations", was.Frontend), to("frontendIPConfigurations", want.Frontend))
	refer(p, "probe", to("probes", was.Probe), to("probes", want.Probe))
	refer(p, "backendAddressPool", to("backendAddressPools", was.Pool), to("backendAddressPools", want.Pool))
	if !strings.EqualFold(was.Pool, want.Pool) {
		delete(p, "backendAddressPools") // Azure repeats the pool there
	}
	say(fresh, p, "protocol", was.Transport, want.Transport)
	say(fresh, p, "loadDistribution", was.Distribution, want.Distribution)
	set(fresh, p, "frontendPort", was.FrontendPort, want.FrontendPort)
	set(fresh, p, "backendPort", was.BackendPort, want.BackendPort)
	set(fresh, p, "idleTimeoutInMinutes", was.IdleMinutes, want.IdleMinutes)
	set(fresh, p, "enableFloatingIP", was.FloatingIP, want.FloatingIP)
	set(fresh, p, "disableOutboundSnat", was.DisableOutboundSNAT, want.DisableOutboundSNAT)
	if want.TCPReset == nil {
		delete(p, "enableTcpReset")
		return
	}
	set(fresh || was.TCPReset == nil, p, "enableTcpReset", was.TCPReset != nil && *was.TCPReset, *want.TCPReset)
}

// encodePart uses the latest read of the pool, or the load balancer's if the api-versions differ.
// Entries of network interfaces retain the read-only interface, their only identity; that Azure
// accepts this is assumed.
func encodePart(pool lb.Pool, origin BalancerDocument, network string) (json.RawMessage, error) {
	here, known := origin.Pools[strings.ToLower(pool.ID.Name)]
	from, found := pool.Origin.(Document)
	if known && (!found || from.Version != origin.Version) {
		from, found = here, true
	}
	body := object{}
	if found {
		var err error
		if body, err = from.object(); err != nil {
			return nil, err
		}
	} else if pool.VirtualNetwork != "" {
		body["properties"] = object{"virtualNetwork": object{"id": pool.VirtualNetwork}}
	}
	properties := stripPool(body)
	if !pool.NIC {
		if err := editPool(properties, pool.Addresses, network); err != nil {
			return nil, err
		}
	}
	delete(body, "id")
	body["name"] = pool.ID.Name
	if known {
		var part shownPart
		if err := json.Unmarshal(here.Text, &part); err != nil {
			return nil, err
		}
		say(true, body, "id", "", part.ID)
		body["name"] = part.Name
	}
	return json.Marshal(body)
}
