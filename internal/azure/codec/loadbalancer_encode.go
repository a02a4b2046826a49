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
	body, old := parser.addObject(jsonObject{}), lb.LoadBalancer{}
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
		if old, err = decodeWithoutPools(b.ID, origin.Document); err != nil {
			return nil, err
		}
	}
	deleteKeys(body, "name")
	setString(!known, body, "location", old.Location, b.Location)
	if !known || old.SKU != b.SKU {
		ensureObject(body, "sku").set("name", b.SKU)
	}
	editExtendedLocation(body, old.ExtendedLocation, b.ExtendedLocation)
	if !maps.Equal(old.Tags, b.Tags) {
		editTags(body, b.Tags)
	}
	p := removeReadOnly(body, "resourceGuid")
	stripItems(p, "outboundRules")
	stripItems(p, "inboundNatRules", "backendIPConfiguration")
	stripItems(p, "inboundNatPools")
	setItems(p, "frontendIPConfigurations", old.Frontends, b.Frontends, func(f lb.Frontend) string { return f.Name }, editFrontend)
	setItems(p, "probes", old.Probes, b.Probes, func(p lb.Probe) string { return p.Name }, editProbe)
	id := b.ID.String()
	setItems(p, "loadBalancingRules", old.Rules, b.Rules, func(r lb.Rule) string { return r.Name }, func(part *jsonObject, fresh bool, old, want lb.Rule) {
		editRule(id, part, fresh, old, want)
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

func editExtendedLocation(body *jsonObject, old, want string) {
	switch {
	case old == want:
	case want == "":
		deleteKeys(body, "extendedLocation")
	default:
		zone := newObject("name", want)
		zone.set("type", "EdgeZone")
		body.set("extendedLocation", zone)
	}
}

func editFrontend(part *jsonObject, fresh bool, old, f lb.Frontend) {
	p := removeReadOnly(part, "inboundNatPools", "inboundNatRules", "loadBalancingRules", "outboundRules")
	if len(f.Zones) > 0 && !slices.Equal(old.Zones, f.Zones) { // an empty list requests no zones
		part.set("zones", f.Zones)
	}
	if !strings.EqualFold(old.PublicIP, f.PublicIP) {
		deleteKeys(p, "publicIPPrefix") // address and prefix are mutually exclusive
	}
	setReference(p, "publicIPAddress", old.PublicIP, f.PublicIP)
	setReference(p, "subnet", old.Subnet, f.Subnet)
	if f.GatewayLoadBalancer != nil {
		setReference(p, "gatewayLoadBalancer", old.GatewayLoadBalancerID(), *f.GatewayLoadBalancer)
	}
	moves := !strings.EqualFold(old.Subnet, f.Subnet)
	if moves || old.Static != f.Static || f.Static && old.PrivateIP != f.PrivateIP {
		deleteKeys(p, "privateIPAddress", "privateIPAllocationMethod")
		if f.Static {
			p.set("privateIPAddress", f.PrivateIP.String())
		}
		if f.Static || f.Subnet != "" {
			p.set("privateIPAllocationMethod", allocationMethod(f.Static))
		}
	}
	if f.Subnet != "" {
		setString(fresh || moves, p, "privateIPAddressVersion", old.Family, f.Family)
	}
}

func editProbe(part *jsonObject, fresh bool, old, want lb.Probe) {
	p := removeReadOnly(part, "loadBalancingRules")
	setString(fresh, p, "protocol", old.Protocol, want.Protocol)
	setString(fresh, p, "requestPath", old.Path, want.Path)
	setValue(fresh, p, "port", old.Port, want.Port)
	setValue(fresh, p, "intervalInSeconds", old.IntervalSeconds, want.IntervalSeconds)
	setValue(fresh, p, "probeThreshold", old.Threshold, want.Threshold)
	setValue(fresh, p, "numberOfProbes", old.Threshold, want.Threshold)
	if want.NoHealthyBackends != "" {
		setString(fresh, p, "noHealthyBackendsBehavior", old.NoHealthyBackends, want.NoHealthyBackends)
	}
}

func editRule(id string, part *jsonObject, fresh bool, old, want lb.Rule) {
	p := removeReadOnly(part)
	refer := func(key, collection, old, want string) {
		switch {
		case strings.EqualFold(old, want):
		case want == "":
			deleteKeys(p, key)
		default:
			p.set(key, newObject("id", id+"/"+collection+"/"+want))
		}
	}
	refer("frontendIPConfiguration", "frontendIPConfigurations", old.Frontend, want.Frontend)
	refer("probe", "probes", old.Probe, want.Probe)
	refer("backendAddressPool", "backendAddressPools", old.Pool, want.Pool)
	if !strings.EqualFold(old.Pool, want.Pool) {
		deleteKeys(p, "backendAddressPools") // Azure repeats the pool there
	}
	setString(fresh, p, "protocol", old.Transport, want.Transport)
	setString(fresh, p, "loadDistribution", old.Distribution, want.Distribution)
	setValue(fresh, p, "frontendPort", old.FrontendPort, want.FrontendPort)
	setValue(fresh, p, "backendPort", old.BackendPort, want.BackendPort)
	setValue(fresh, p, "idleTimeoutInMinutes", old.IdleMinutes, want.IdleMinutes)
	setValue(fresh, p, "enableFloatingIP", old.FloatingIP, want.FloatingIP)
	setValue(fresh, p, "disableOutboundSnat", old.DisableOutboundSNAT, want.DisableOutboundSNAT)
	if want.ConnectionTracking != nil {
		setValue(fresh, p, "enableConnectionTracking", old.TracksConnections(), *want.ConnectionTracking)
	}
	if want.TCPReset == nil {
		deleteKeys(p, "enableTcpReset")
		return
	}
	setValue(fresh || old.TCPReset == nil, p, "enableTcpReset", old.TCPReset != nil && *old.TCPReset, *want.TCPReset)
}

// encodePoolItem uses the latest read of the pool, or the load balancer's if the api-versions differ.
// Entries of network interfaces retain the read-only interface, their only identity; that Azure
// accepts this is assumed.
func encodePoolItem(parser *objectParser, pool lb.Pool, origin LoadBalancerDocument, network string) (*jsonObject, error) {
	document, known := origin.Pools[strings.ToLower(pool.ID.Name)]
	from, found := pool.Origin.(Document)
	if known && (!found || from.Version != origin.Version) {
		from, found = document, true
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
	if known && &from.Text[0] != &document.Text[0] {
		var err error
		if part, err = new(objectParser).parseDocument(document.Text); err != nil {
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
