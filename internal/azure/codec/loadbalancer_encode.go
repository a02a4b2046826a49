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
	origin, known := b.Origin.(LoadBalancerDocument)
	if known {
		var err error
		if body, err = origin.decodeObject(); err != nil {
			return nil, err
		}
		if was, err = decodeWithoutPools(b.ID, origin.Document); err != nil {
			return nil, err
		}
	}
	deleteKeys(body, "name")
	setString(!known, body, "location", was.Location, b.Location)
	if !known || was.SKU != b.SKU {
		ensureObject(body, "sku")["name"] = b.SKU
	}
	editExtendedLocation(body, was.ExtendedLocation, b.ExtendedLocation)
	if !maps.Equal(was.Tags, b.Tags) {
		editTags(body, b.Tags)
	}
	p := removeReadOnly(body, "resourceGuid")
	stripItems(p, "outboundRules")
	stripItems(p, "inboundNatRules", "backendIPConfiguration")
	stripItems(p, "inboundNatPools")
	setItems(p, "frontendIPConfigurations", was.Frontends, b.Frontends, func(f lb.Frontend) string { return f.Name }, editFrontend)
	setItems(p, "probes", was.Probes, b.Probes, func(p lb.Probe) string { return p.Name }, editProbe)
	setItems(p, "loadBalancingRules", was.Rules, b.Rules, func(r lb.Rule) string { return r.Name }, func(part object, fresh bool, was, want lb.Rule) {
		editRule(b.ID.String(), part, fresh, was, want)
	})
	pools := make([]json.RawMessage, 0, len(b.Pools))
	for _, pool := range b.Pools {
		text, err := encodePoolItem(pool, origin, network)
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
	p := removeReadOnly(part, "inboundNatPools", "inboundNatRules", "loadBalancingRules", "outboundRules")
	if len(f.Zones) > 0 && !slices.Equal(was.Zones, f.Zones) { // an empty list requests no zones
		part["zones"] = f.Zones
	}
	if !strings.EqualFold(was.PublicIP, f.PublicIP) {
		delete(p, "publicIPPrefix") // address and prefix are mutually exclusive
	}
	setReference(p, "publicIPAddress", was.PublicIP, f.PublicIP)
	setReference(p, "subnet", was.Subnet, f.Subnet)
	moves := !strings.EqualFold(was.Subnet, f.Subnet)
	if moves || was.Static != f.Static || f.Static && was.PrivateIP != f.PrivateIP {
		deleteKeys(p, "privateIPAddress", "privateIPAllocationMethod")
		if f.Static {
			p["privateIPAddress"] = f.PrivateIP.String()
		}
		if f.Static || f.Subnet != "" {
			p["privateIPAllocationMethod"] = allocationMethod(f.Static)
		}
	}
	if f.Subnet != "" {
		setString(fresh || moves, p, "privateIPAddressVersion", was.Family, f.Family)
	}
}

func editProbe(part object, fresh bool, was, want lb.Probe) {
	p := removeReadOnly(part, "loadBalancingRules")
	setString(fresh, p, "protocol", was.Protocol, want.Protocol)
	setString(fresh, p, "requestPath", was.Path, want.Path)
	setValue(fresh, p, "port", was.Port, want.Port)
	setValue(fresh, p, "intervalInSeconds", was.IntervalSeconds, want.IntervalSeconds)
	setValue(fresh, p, "probeThreshold", was.Threshold, want.Threshold)
	setValue(fresh, p, "numberOfProbes", was.Threshold, want.Threshold)
}

func editRule(id string, part object, fresh bool, was, want lb.Rule) {
	p := removeReadOnly(part)
	to := func(collection, name string) string {
		if name == "" {
			return ""
		}
		return id + "/" + collection + "/" + name
	}
	setReference(p, "frontendIPConfiguration", to("frontendIPConfigurations", was.Frontend), to("frontendIPConfigurations", want.Frontend))
	setReference(p, "probe", to("probes", was.Probe), to("probes", want.Probe))
	setReference(p, "backendAddressPool", to("backendAddressPools", was.Pool), to("backendAddressPools", want.Pool))
	if !strings.EqualFold(was.Pool, want.Pool) {
		delete(p, "backendAddressPools") // Azure repeats the pool there
	}
	setString(fresh, p, "protocol", was.Transport, want.Transport)
	setString(fresh, p, "loadDistribution", was.Distribution, want.Distribution)
	setValue(fresh, p, "frontendPort", was.FrontendPort, want.FrontendPort)
	setValue(fresh, p, "backendPort", was.BackendPort, want.BackendPort)
	setValue(fresh, p, "idleTimeoutInMinutes", was.IdleMinutes, want.IdleMinutes)
	setValue(fresh, p, "enableFloatingIP", was.FloatingIP, want.FloatingIP)
	setValue(fresh, p, "disableOutboundSnat", was.DisableOutboundSNAT, want.DisableOutboundSNAT)
	if want.TCPReset == nil {
		delete(p, "enableTcpReset")
		return
	}
	setValue(fresh || was.TCPReset == nil, p, "enableTcpReset", was.TCPReset != nil && *was.TCPReset, *want.TCPReset)
}

// encodePoolItem uses the latest read of the pool, or the load balancer's if the api-versions differ.
// Entries of network interfaces retain the read-only interface, their only identity; that Azure
// accepts this is assumed.
func encodePoolItem(pool lb.Pool, origin LoadBalancerDocument, network string) (json.RawMessage, error) {
	here, known := origin.Pools[strings.ToLower(pool.ID.Name)]
	from, found := pool.Origin.(Document)
	if known && (!found || from.Version != origin.Version) {
		from, found = here, true
	}
	body := object{}
	if found {
		var err error
		if body, err = from.decodeObject(); err != nil {
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
		var part armItem
		if err := json.Unmarshal(here.Text, &part); err != nil {
			return nil, err
		}
		setString(true, body, "id", "", part.ID)
		body["name"] = part.Name
	}
	return json.Marshal(body)
}
