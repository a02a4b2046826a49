// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// EncodeLoadBalancer returns the body for b. Unchanged properties are sent back as read.
func EncodeLoadBalancer(b lb.LoadBalancer, network string) (any, error) {
	parser := new(objectParser)
	body, was := parser.addObject(jsonObject{}), lb.LoadBalancer{}
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
		if body, err = parser.parseDocument(origin.Text); err != nil {
			return nil, err
		}
		if was, err = decodeWithoutPools(b.ID, origin.Document); err != nil {
			return nil, err
		}
	}
	deleteKeys(body, "name")
	setString(!known, body, "location", was.Location, b.Location)
	if !known || was.SKU != b.SKU {
		ensureObject(body, "sku").set("name", b.SKU)
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
	id := b.ID.String()
	setItems(p, "loadBalancingRules", was.Rules, b.Rules, func(r lb.Rule) string { return r.Name }, func(part *jsonObject, fresh bool, was, want lb.Rule) {
		editRule(id, part, fresh, was, want)
	})
	pools := make([]*jsonObject, 0, len(b.Pools))
	for _, pool := range b.Pools {
		part, err := encodePoolItem(parser, pool, origin, network)
		if err != nil {
			return nil, err
		}
		pools = append(pools, part)
	}
	p.set("backendAddressPools", pools)
	return body, nil
}

func editExtendedLocation(body *jsonObject, was, want string) {
	switch {
	case was == want:
	case want == "":
		deleteKeys(body, "extendedLocation")
	default:
		zone := newObject("name", want)
		zone.set("type", "EdgeZone")
		body.set("extendedLocation", zone)
	}
}

func editFrontend(part *jsonObject, fresh bool, was, f lb.Frontend) {
	p := removeReadOnly(part, "inboundNatPools", "inboundNatRules", "loadBalancingRules", "outboundRules")
	if len(f.Zones) > 0 && !slices.Equal(was.Zones, f.Zones) { // an empty list requests no zones
		part.set("zones", f.Zones)
	}
	if !strings.EqualFold(was.PublicIP, f.PublicIP) {
		deleteKeys(p, "publicIPPrefix") // address and prefix are mutually exclusive
	}
	setReference(p, "publicIPAddress", was.PublicIP, f.PublicIP)
	setReference(p, "subnet", was.Subnet, f.Subnet)
	if f.GatewayLoadBalancer != nil {
		setReference(p, "gatewayLoadBalancer", was.GatewayLoadBalancerID(), *f.GatewayLoadBalancer)
	}
	moves := !strings.EqualFold(was.Subnet, f.Subnet)
	if moves || was.Static != f.Static || f.Static && was.PrivateIP != f.PrivateIP {
		deleteKeys(p, "privateIPAddress", "privateIPAllocationMethod")
		if f.Static {
			p.set("privateIPAddress", f.PrivateIP.String())
		}
		if f.Static || f.Subnet != "" {
			p.set("privateIPAllocationMethod", allocationMethod(f.Static))
		}
	}
	if f.Subnet != "" {
		setString(fresh || moves, p, "privateIPAddressVersion", was.Family, f.Family)
	}
}

func editProbe(part *jsonObject, fresh bool, was, want lb.Probe) {
	p := removeReadOnly(part, "loadBalancingRules")
	setString(fresh, p, "protocol", was.Protocol, want.Protocol)
	setString(fresh, p, "requestPath", was.Path, want.Path)
	setValue(fresh, p, "port", was.Port, want.Port)
	setValue(fresh, p, "intervalInSeconds", was.IntervalSeconds, want.IntervalSeconds)
	setValue(fresh, p, "probeThreshold", was.Threshold, want.Threshold)
	setValue(fresh, p, "numberOfProbes", was.Threshold, want.Threshold)
	if want.NoHealthyBackends != "" {
		setString(fresh, p, "noHealthyBackendsBehavior", was.NoHealthyBackends, want.NoHealthyBackends)
	}
}

func editRule(id string, part *jsonObject, fresh bool, was, want lb.Rule) {
	p := removeReadOnly(part)
	refer := func(key, collection, was, want string) {
		switch {
		case strings.EqualFold(was, want):
		case want == "":
			deleteKeys(p, key)
		default:
			p.set(key, newObject("id", id+"/"+collection+"/"+want))
		}
	}
	refer("frontendIPConfiguration", "frontendIPConfigurations", was.Frontend, want.Frontend)
	refer("probe", "probes", was.Probe, want.Probe)
	refer("backendAddressPool", "backendAddressPools", was.Pool, want.Pool)
	if !strings.EqualFold(was.Pool, want.Pool) {
		deleteKeys(p, "backendAddressPools") // Azure repeats the pool there
	}
	setString(fresh, p, "protocol", was.Transport, want.Transport)
	setString(fresh, p, "loadDistribution", was.Distribution, want.Distribution)
	setValue(fresh, p, "frontendPort", was.FrontendPort, want.FrontendPort)
	setValue(fresh, p, "backendPort", was.BackendPort, want.BackendPort)
	setValue(fresh, p, "idleTimeoutInMinutes", was.IdleMinutes, want.IdleMinutes)
	setValue(fresh, p, "enableFloatingIP", was.FloatingIP, want.FloatingIP)
	setValue(fresh, p, "disableOutboundSnat", was.DisableOutboundSNAT, want.DisableOutboundSNAT)
	if want.ConnectionTracking != nil {
		setValue(fresh, p, "enableConnectionTracking", was.TracksConnections(), *want.ConnectionTracking)
	}
	if want.TCPReset == nil {
		deleteKeys(p, "enableTcpReset")
		return
	}
	setValue(fresh || was.TCPReset == nil, p, "enableTcpReset", was.TCPReset != nil && *was.TCPReset, *want.TCPReset)
}

// encodePoolItem uses the latest read of the pool, or the load balancer's if the api-versions differ.
// Entries of network interfaces retain the read-only interface, their only identity; that Azure
// accepts this is assumed.
func encodePoolItem(parser *objectParser, pool lb.Pool, origin LoadBalancerDocument, network string) (*jsonObject, error) {
	here, known := origin.Pools[strings.ToLower(pool.ID.Name)]
	from, found := pool.Origin.(Document)
	if known && (!found || from.Version != origin.Version) {
		from, found = here, true
	}
	body := parser.addObject(jsonObject{})
	if found {
		var err error
		if body, err = parser.parseDocument(from.Text); err != nil {
			return nil, err
		}
	} else if pool.VirtualNetwork != "" {
		body.set(keyProperties, newObject(keyNetwork, newObject("id", pool.VirtualNetwork)))
	}
	part := body
	if known && &from.Text[0] != &here.Text[0] {
		var err error
		if part, err = new(objectParser).parseDocument(here.Text); err != nil {
			return nil, err
		}
	}
	id, name := stringValue(part, "id"), stringValue(part, "name")
	if known && id == "" && part.has("id") {
		return nil, fmt.Errorf("the id of pool %s is not a string", name)
	} else if !known {
		id, name = "", pool.ID.Name
	}
	properties := stripPool(body)
	if seconds := pool.DrainSeconds; seconds != nil {
		deleteKeys(properties, keyDrainPeriod)
		if *seconds > 0 {
			properties.set(keyDrainPeriod, *seconds)
		}
	}
	if !pool.NIC {
		if err := editPool(properties, pool.Addresses, network); err != nil {
			return nil, err
		}
	}
	setString(true, body, "id", "", id)
	body.set("name", name)
	return body, nil
}
