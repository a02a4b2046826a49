// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// DecodeLoadBalancer turns what Azure shows of a load balancer into the vocabulary.
func DecodeLoadBalancer(id lb.LoadBalancerID, shown *armnetwork.LoadBalancer) lb.LoadBalancer {
	b := lb.LoadBalancer{
		ID: id, Etag: etag(shown.Etag), Location: Value(shown.Location), SKU: lb.Basic,
		Tags: decodeTags(shown.Tags), Pinned: map[string]bool{}, Origin: shown,
	}
	if shown.SKU != nil && Value(shown.SKU.Name) != "" {
		b.SKU = lb.SKU(*shown.SKU.Name)
	}
	if shown.ExtendedLocation != nil {
		b.ExtendedLocation = Value(shown.ExtendedLocation.Name)
	}
	p := shown.Properties
	if p == nil {
		return b
	}
	b.Provisioning = provisioning(Value(p.ProvisioningState))
	for _, f := range present(p.FrontendIPConfigurations) {
		b.Frontends = append(b.Frontends, decodeFrontend(f))
	}
	for _, pool := range present(p.BackendAddressPools) {
		b.Pools = append(b.Pools, DecodePool(lb.PoolID{LoadBalancer: id, Name: Value(pool.Name)}, pool))
	}
	for _, probe := range present(p.Probes) {
		b.Probes = append(b.Probes, decodeProbe(probe))
	}
	for _, r := range present(p.LoadBalancingRules) {
		b.Rules = append(b.Rules, decodeRule(r))
	}
	pin(b, p)
	b.NATRules = countNATRules(p)
	return b
}

// countNATRules counts the inbound NAT rules that Azure counts for network interfaces; see lb.LoadBalancer.
func countNATRules(p *armnetwork.LoadBalancerPropertiesFormat) map[string]int {
	n, single := map[string]int{}, map[string]int{}
	for _, r := range present(p.InboundNatRules) {
		switch {
		case r.Properties == nil:
		case NameIn(r.Properties.BackendAddressPool) != "":
			n[strings.ToLower(NameIn(r.Properties.BackendAddressPool))]++
		case r.Properties.BackendIPConfiguration != nil:
			of := strings.ToLower(Value(r.Properties.BackendIPConfiguration.ID))
			single[of]++
			n[""] = max(n[""], single[of])
		}
	}
	if len(n) == 0 {
		return nil
	}
	return n
}

// pin notes the frontends and pools that something refers to which is not in the
// vocabulary. What other resources refer to them (a private link service, a load balancer
// of another region) Azure does not show here: it refuses to remove what they use.
func pin(b lb.LoadBalancer, p *armnetwork.LoadBalancerPropertiesFormat) {
	add := func(references ...*armnetwork.SubResource) {
		for _, r := range references {
			if name := NameIn(r); name != "" {
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
			if !strings.EqualFold(NameIn(pool), b.Rules[i].Pool) {
				add(pool)
			}
		}
	}
}

func decodeFrontend(shown *armnetwork.FrontendIPConfiguration) lb.Frontend {
	f := lb.Frontend{Name: Value(shown.Name), Zones: values(shown.Zones)}
	p := shown.Properties
	if p == nil {
		return f
	}
	if p.PublicIPAddress != nil {
		f.PublicIP = Value(p.PublicIPAddress.ID)
	}
	if p.Subnet != nil {
		f.Subnet = Value(p.Subnet.ID)
	}
	f.PrivateIP, _ = netip.ParseAddr(Value(p.PrivateIPAddress)) // zero if it is none
	f.Static = f.Subnet != "" && Value(p.PrivateIPAllocationMethod) == armnetwork.IPAllocationMethodStatic
	f.Family = lb.Family(Value(p.PrivateIPAddressVersion))
	if f.Family == "" && f.Subnet != "" {
		f.Family = lb.IPv4 // Azure's default; of a public frontend the public IP tells
	}
	return f
}

func decodeProbe(shown *armnetwork.Probe) lb.Probe {
	probe := lb.Probe{Name: Value(shown.Name)}
	if p := shown.Properties; p != nil {
		probe.Protocol, probe.Port, probe.Path = lb.ProbeProtocol(Value(p.Protocol)), Value(p.Port), Value(p.RequestPath)
		probe.IntervalSeconds = Value(p.IntervalInSeconds)
		// The threshold is what Azure acts upon (documented); the number of probes is what
		// older clients set.
		probe.Threshold = cmp.Or(Value(p.ProbeThreshold), Value(p.NumberOfProbes))
	}
	return probe
}

func decodeRule(shown *armnetwork.LoadBalancingRule) lb.Rule {
	r := lb.Rule{Name: Value(shown.Name)}
	p := shown.Properties
	if p == nil {
		return r
	}
	r.Transport = lb.Transport(Value(p.Protocol))
	r.Frontend, r.Pool, r.Probe = NameIn(p.FrontendIPConfiguration), NameIn(p.BackendAddressPool), NameIn(p.Probe)
	if pools := present(p.BackendAddressPools); r.Pool == "" && len(pools) > 0 {
		r.Pool = NameIn(pools[0])
	}
	r.FrontendPort, r.BackendPort = Value(p.FrontendPort), Value(p.BackendPort)
	r.FloatingIP, r.DisableOutboundSNAT = Value(p.EnableFloatingIP), Value(p.DisableOutboundSnat)
	r.IdleMinutes, r.Distribution = cmp.Or(Value(p.IdleTimeoutInMinutes), 4), cmp.Or(lb.Distribution(Value(p.LoadDistribution)), lb.Spread)
	if p.EnableTCPReset != nil {
		r.TCPReset = new(*p.EnableTCPReset)
	}
	return r
}

// NameIn names what a reference points to: the last part of its id.
func NameIn(r *armnetwork.SubResource) string {
	id := SubResourceID(r)
	return id[strings.LastIndexByte(id, '/')+1:]
}

func decodeTags(shown map[string]*string) map[string]string {
	tags := make(map[string]string, len(shown))
	for name, text := range shown {
		tags[name] = Value(text)
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
