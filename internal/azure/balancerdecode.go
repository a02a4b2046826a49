// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// decodeBalancer turns what Azure shows of a load balancer into the vocabulary.
func decodeBalancer(id lb.LoadBalancerID, shown *armnetwork.LoadBalancer) lb.LoadBalancer {
	b := lb.LoadBalancer{
		ID: id, Etag: value(shown.Etag), Location: value(shown.Location), SKU: lb.Basic,
		Tags: decodeTags(shown.Tags), Pinned: map[string]bool{}, Origin: shown,
	}
	if shown.SKU != nil && value(shown.SKU.Name) != "" {
		b.SKU = lb.SKU(*shown.SKU.Name)
	}
	if shown.ExtendedLocation != nil {
		b.ExtendedLocation = value(shown.ExtendedLocation.Name)
	}
	p := shown.Properties
	if p == nil {
		return b
	}
	b.Provisioning = provisioning(value(p.ProvisioningState))
	for _, f := range present(p.FrontendIPConfigurations) {
		b.Frontends = append(b.Frontends, decodeFrontend(f))
	}
	for _, pool := range present(p.BackendAddressPools) {
		b.Pools = append(b.Pools, decode(lb.PoolID{LoadBalancer: id, Name: value(pool.Name)}, pool))
	}
	for _, probe := range present(p.Probes) {
		b.Probes = append(b.Probes, decodeProbe(probe))
	}
	for _, r := range present(p.LoadBalancingRules) {
		b.Rules = append(b.Rules, decodeRule(r))
	}
	pin(b, p)
	return b
}

// pin notes the frontends and pools that something refers to which is not in the
// vocabulary. What other resources refer to them (a private link service, a load balancer
// of another region) Azure does not show here: it refuses to remove what they use.
func pin(b lb.LoadBalancer, p *armnetwork.LoadBalancerPropertiesFormat) {
	add := func(references ...*armnetwork.SubResource) {
		for _, r := range references {
			if name := part(r); name != "" {
				b.Pinned[strings.ToLower(name)] = true
			}
		}
	}
	for _, o := range present(p.OutboundRules) {
		if o.Properties != nil {
			add(o.Properties.BackendAddressPool)
			add(o.Properties.FrontendIPConfigurations...)
		}
	}
	for _, n := range present(p.InboundNatRules) {
		if n.Properties != nil {
			add(n.Properties.BackendAddressPool, n.Properties.FrontendIPConfiguration)
		}
	}
	for _, n := range present(p.InboundNatPools) {
		if n.Properties != nil {
			add(n.Properties.FrontendIPConfiguration)
		}
	}
	// A rule of a gateway load balancer has two pools, and the vocabulary room for one.
	for i, r := range present(p.LoadBalancingRules) {
		if r.Properties == nil {
			continue
		}
		for _, pool := range r.Properties.BackendAddressPools {
			if !strings.EqualFold(part(pool), b.Rules[i].Pool) {
				add(pool)
			}
		}
	}
	for _, pool := range b.Pools {
		if pool.NIC { // network interfaces refer to it
			b.Pinned[strings.ToLower(pool.ID.Name)] = true
		}
	}
}

func decodeFrontend(shown *armnetwork.FrontendIPConfiguration) lb.Frontend {
	f := lb.Frontend{Name: value(shown.Name), Zones: values(shown.Zones)}
	p := shown.Properties
	if p == nil {
		return f
	}
	if p.PublicIPAddress != nil {
		f.PublicIP = value(p.PublicIPAddress.ID)
	}
	if p.Subnet != nil {
		f.Subnet = value(p.Subnet.ID)
	}
	f.PrivateIP, _ = netip.ParseAddr(value(p.PrivateIPAddress)) // zero if it is none
	f.Static = f.Subnet != "" && value(p.PrivateIPAllocationMethod) == armnetwork.IPAllocationMethodStatic
	f.Family = lb.Family(value(p.PrivateIPAddressVersion))
	if f.Family == "" && f.Subnet != "" {
		f.Family = lb.IPv4 // Azure's default; of a public frontend the public IP tells
	}
	return f
}

func decodeProbe(shown *armnetwork.Probe) lb.Probe {
	probe := lb.Probe{Name: value(shown.Name)}
	if p := shown.Properties; p != nil {
		probe.Protocol, probe.Port, probe.Path = lb.ProbeProtocol(value(p.Protocol)), value(p.Port), value(p.RequestPath)
		probe.IntervalSeconds = value(p.IntervalInSeconds)
		// The threshold is what Azure acts upon (documented); the number of probes is what
		// older clients set.
		probe.Threshold = cmp.Or(value(p.ProbeThreshold), value(p.NumberOfProbes))
	}
	return probe
}

func decodeRule(shown *armnetwork.LoadBalancingRule) lb.Rule {
	r := lb.Rule{Name: value(shown.Name)}
	p := shown.Properties
	if p == nil {
		return r
	}
	r.Transport = lb.Transport(value(p.Protocol))
	r.Frontend, r.Pool, r.Probe = part(p.FrontendIPConfiguration), part(p.BackendAddressPool), part(p.Probe)
	if pools := present(p.BackendAddressPools); r.Pool == "" && len(pools) > 0 {
		r.Pool = part(pools[0])
	}
	r.FrontendPort, r.BackendPort = value(p.FrontendPort), value(p.BackendPort)
	r.FloatingIP, r.DisableOutboundSNAT = value(p.EnableFloatingIP), value(p.DisableOutboundSnat)
	r.IdleMinutes, r.Distribution = cmp.Or(value(p.IdleTimeoutInMinutes), 4), cmp.Or(lb.Distribution(value(p.LoadDistribution)), lb.Spread)
	if p.EnableTCPReset != nil {
		r.TCPReset = new(*p.EnableTCPReset)
	}
	return r
}

// part names what a reference points to: the last part of its id.
func part(r *armnetwork.SubResource) string {
	id := subResourceID(r)
	return id[strings.LastIndexByte(id, '/')+1:]
}

func decodeTags(shown map[string]*string) map[string]string {
	tags := make(map[string]string, len(shown))
	for name, text := range shown {
		tags[name] = value(text)
	}
	return tags
}

func values(shown []*string) []string {
	var list []string
	for _, text := range present(shown) {
		list = append(list, *text)
	}
	return list
}

// present leaves out what Azure shows as null.
func present[T any](list []*T) []*T {
	var found []*T
	for _, item := range list {
		if item != nil {
			found = append(found, item)
		}
	}
	return found
}
