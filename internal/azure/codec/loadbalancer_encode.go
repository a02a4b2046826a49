// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// EncodeLoadBalancer returns the body that makes a load balancer what b says. It is built
// anew from what was read, nil for a new one, which is not changed: what b says
// otherwise is said otherwise, and all else that a client may set is sent back as it was.
func EncodeLoadBalancer(b lb.LoadBalancer, read *armnetwork.LoadBalancer, network string) (armnetwork.LoadBalancer, error) {
	next, origin := sendableBalancer(read), &armnetwork.LoadBalancerPropertiesFormat{}
	was := lb.LoadBalancer{}
	if read != nil {
		was = DecodeLoadBalancer(b.ID, read)
		if read.Properties != nil {
			origin = read.Properties
		}
	}
	say(read == nil, &next.Location, was.Location, b.Location)
	if read == nil || was.SKU != b.SKU {
		next.SKU = clone(next.SKU)
		next.SKU.Name = new(armnetwork.LoadBalancerSKUName(b.SKU))
	}
	next.ExtendedLocation = extendedLocation(next.ExtendedLocation, was.ExtendedLocation, b.ExtendedLocation)
	if !maps.Equal(was.Tags, b.Tags) {
		next.Tags = encodeTags(b.Tags)
	}
	p := next.Properties
	p.FrontendIPConfigurations = parts(b.Frontends, origin.FrontendIPConfigurations,
		func(f lb.Frontend) string { return f.Name }, func(f *armnetwork.FrontendIPConfiguration) *string { return f.Name }, encodeFrontend)
	p.Probes = parts(b.Probes, origin.Probes,
		func(p lb.Probe) string { return p.Name }, func(p *armnetwork.Probe) *string { return p.Name }, encodeProbe)
	p.LoadBalancingRules = parts(b.Rules, origin.LoadBalancingRules,
		func(r lb.Rule) string { return r.Name }, func(r *armnetwork.LoadBalancingRule) *string { return r.Name },
		func(r lb.Rule, read *armnetwork.LoadBalancingRule) *armnetwork.LoadBalancingRule {
			return encodeRule(b.ID, r, read)
		})
	var err error
	p.BackendAddressPools = parts(b.Pools, origin.BackendAddressPools,
		func(p lb.Pool) string { return p.ID.Name }, func(p *armnetwork.BackendAddressPool) *string { return p.Name },
		func(pool lb.Pool, read *armnetwork.BackendAddressPool) *armnetwork.BackendAddressPool {
			body, problem := encodePart(pool, read, network)
			if problem != nil {
				err = problem
			}
			return body
		})
	return *next, err
}

// parts encodes the parts of a kind, each from what was read of it, nil for a new one. A
// list without parts is sent as an empty array, as EncodePool does.
func parts[T, A any](list []T, read []*A, name func(T) string, nameRead func(*A) *string, encode func(T, *A) *A) []*A {
	known := make(map[string]*A, len(read))
	for _, item := range present(read) {
		known[strings.ToLower(Value(nameRead(item)))] = item
	}
	next := make([]*A, 0, len(list))
	for _, item := range list {
		next = append(next, encode(item, known[strings.ToLower(name(item))]))
	}
	return next
}

// known returns what a part was when it was read. A new one was nothing, and gets its name.
func known[A, T any](read *A, decode func(*A) T, name **string, text string) (was T, fresh bool) {
	if read == nil {
		*name = &text
		return was, true
	}
	return decode(read), false
}

func encodeFrontend(f lb.Frontend, read *armnetwork.FrontendIPConfiguration) *armnetwork.FrontendIPConfiguration {
	next := sendableFrontend(read)
	was, fresh := known(read, decodeFrontend, &next.Name, f.Name)
	if len(f.Zones) > 0 && !slices.Equal(was.Zones, f.Zones) { // none named is none asked for
		next.Zones = pointers(f.Zones)
	}
	p := next.Properties
	if !strings.EqualFold(was.PublicIP, f.PublicIP) {
		p.PublicIPAddress, p.PublicIPPrefix = nil, nil // the address comes from the one or the other
		if f.PublicIP != "" {
			p.PublicIPAddress = &armnetwork.PublicIPAddress{ID: &f.PublicIP}
		}
	}
	moves := !strings.EqualFold(was.Subnet, f.Subnet)
	if moves {
		p.Subnet = nil
		if f.Subnet != "" {
			p.Subnet = &armnetwork.Subnet{ID: &f.Subnet}
		}
	}
	if moves || was.Static != f.Static || f.Static && was.PrivateIP != f.PrivateIP {
		p.PrivateIPAddress, p.PrivateIPAllocationMethod = nil, nil
		switch {
		case f.Static:
			p.PrivateIPAddress, p.PrivateIPAllocationMethod = new(f.PrivateIP.String()), new(armnetwork.IPAllocationMethodStatic)
		case f.Subnet != "":
			p.PrivateIPAllocationMethod = new(armnetwork.IPAllocationMethodDynamic)
		}
	}
	if f.Subnet != "" {
		say(fresh || moves, &p.PrivateIPAddressVersion, was.Family, f.Family)
	}
	return next
}

func encodeProbe(probe lb.Probe, read *armnetwork.Probe) *armnetwork.Probe {
	next := sendableProbe(read)
	was, fresh := known(read, decodeProbe, &next.Name, probe.Name)
	p := next.Properties
	say(fresh, &p.Protocol, was.Protocol, probe.Protocol)
	say(fresh, &p.RequestPath, was.Path, probe.Path)
	set(fresh, &p.Port, was.Port, probe.Port)
	set(fresh, &p.IntervalInSeconds, was.IntervalSeconds, probe.IntervalSeconds)
	set(fresh, &p.ProbeThreshold, was.Threshold, probe.Threshold)
	set(fresh, &p.NumberOfProbes, was.Threshold, probe.Threshold)
	return next
}

func encodeRule(id lb.LoadBalancerID, r lb.Rule, read *armnetwork.LoadBalancingRule) *armnetwork.LoadBalancingRule {
	next := sendableRule(read)
	was, fresh := known(read, decodeRule, &next.Name, r.Name)
	p := next.Properties
	refer(&p.FrontendIPConfiguration, id, "frontendIPConfigurations", was.Frontend, r.Frontend)
	refer(&p.Probe, id, "probes", was.Probe, r.Probe)
	if !strings.EqualFold(was.Pool, r.Pool) {
		p.BackendAddressPools = nil // Azure shows the pool there, too
		refer(&p.BackendAddressPool, id, "backendAddressPools", was.Pool, r.Pool)
	}
	say(fresh, &p.Protocol, was.Transport, r.Transport)
	say(fresh, &p.LoadDistribution, was.Distribution, r.Distribution)
	set(fresh, &p.FrontendPort, was.FrontendPort, r.FrontendPort)
	set(fresh, &p.BackendPort, was.BackendPort, r.BackendPort)
	set(fresh, &p.IdleTimeoutInMinutes, was.IdleMinutes, r.IdleMinutes)
	set(fresh, &p.EnableFloatingIP, was.FloatingIP, r.FloatingIP)
	set(fresh, &p.DisableOutboundSnat, was.DisableOutboundSNAT, r.DisableOutboundSNAT)
	p.EnableTCPReset = r.TCPReset
	return next
}

// encodePool encodes a pool as a write of the pool alone does. What it holds besides its
// addresses comes from where the pool was read last: by itself, or here.
func encodePart(pool lb.Pool, here *armnetwork.BackendAddressPool, network string) (*armnetwork.BackendAddressPool, error) {
	read, alone := pool.Origin.(*armnetwork.BackendAddressPool)
	if !alone {
		read = here
	}
	if read == nil {
		read = &armnetwork.BackendAddressPool{}
		if pool.VirtualNetwork != "" {
			read.Properties = &armnetwork.BackendAddressPoolPropertiesFormat{VirtualNetwork: &armnetwork.SubResource{ID: &pool.VirtualNetwork}}
		}
	}
	next := sendableInterfaces(read)
	if !pool.NIC {
		body, err := EncodePool(read, pool.Addresses, network)
		if err != nil {
			return nil, err
		}
		next = &body
	}
	next.ID, next.Name = nil, &pool.ID.Name
	if here != nil {
		next.ID, next.Name = here.ID, here.Name
	}
	return next, nil
}
