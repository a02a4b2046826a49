// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// LoadBalancerDocument is the Origin of a load balancer. Its pools are separate, since each is also
// written alone; an entry is the Origin of its pool.
type LoadBalancerDocument struct {
	Document                     // without the pools
	Pools    map[string]Document // by lower-case name
}

type armLoadBalancer struct {
	Etag     string            `json:"etag"`
	Location string            `json:"location"`
	Tags     map[string]string `json:"tags"`
	SKU      struct {
		Name lb.SKU `json:"name"`
		Tier string `json:"tier"`
	} `json:"sku"`
	Extended   armExtendedLocation       `json:"extendedLocation"`
	Properties armLoadBalancerProperties `json:"properties"`
}

type armExtendedLocation struct {
	Name string `json:"name"`
}

type armLoadBalancerProperties struct {
	State     string         `json:"provisioningState"`
	Frontends []*armFrontend `json:"frontendIPConfigurations"`
	Pools     []struct{}     `json:"backendAddressPools"`
	Probes    []*armProbe    `json:"probes"`
	Rules     []*armRule     `json:"loadBalancingRules"`
	Outbound  []armReferrer  `json:"outboundRules"`
	NATRules  []armReferrer  `json:"inboundNatRules"`
	NATPools  []armReferrer  `json:"inboundNatPools"`
}

// armReferrer is an unmodeled resource that refers to frontends and pools.
type armReferrer struct {
	Properties struct {
		Frontend      armReference   `json:"frontendIPConfiguration"`
		Frontends     []armReference `json:"frontendIPConfigurations"`
		Pool          armReference   `json:"backendAddressPool"`
		Configuration armReference   `json:"backendIPConfiguration"`
	} `json:"properties"`
}

type armFrontend struct {
	Name       string   `json:"name"`
	Zones      []string `json:"zones"`
	Properties struct {
		PublicIP armReference `json:"publicIPAddress"`
		Subnet   armReference `json:"subnet"`
		IP       string       `json:"privateIPAddress"`
		Method   string       `json:"privateIPAllocationMethod"`
		Version  lb.Family    `json:"privateIPAddressVersion"`
		Gateway  armReference `json:"gatewayLoadBalancer"`
	} `json:"properties"`
}

type armProbe struct {
	Name       string `json:"name"`
	Properties struct {
		Protocol  lb.ProbeProtocol     `json:"protocol"`
		Port      int32                `json:"port"`
		Path      string               `json:"requestPath"`
		Interval  int32                `json:"intervalInSeconds"`
		Probes    int32                `json:"numberOfProbes"`
		Threshold int32                `json:"probeThreshold"`
		AllDown   lb.NoHealthyBackends `json:"noHealthyBackendsBehavior"`
	} `json:"properties"`
}

type armRule struct {
	Name       string `json:"name"`
	Properties struct {
		Protocol            lb.Transport    `json:"protocol"`
		Frontend            armReference    `json:"frontendIPConfiguration"`
		Pool                armReference    `json:"backendAddressPool"`
		Pools               []armReference  `json:"backendAddressPools"`
		Probe               armReference    `json:"probe"`
		FrontendPort        int32           `json:"frontendPort"`
		BackendPort         int32           `json:"backendPort"`
		FloatingIP          bool            `json:"enableFloatingIP"`
		DisableOutboundSNAT bool            `json:"disableOutboundSnat"`
		IdleMinutes         int32           `json:"idleTimeoutInMinutes"`
		Distribution        lb.Distribution `json:"loadDistribution"`
		TCPReset            *bool           `json:"enableTcpReset"`
		ConnectionTracking  *bool           `json:"enableConnectionTracking"`
	} `json:"properties"`
}

var errUnexpectedPools = errors.New("its backendAddressPools are not found where they have to be")

// DecodeLoadBalancer decodes a load balancer.
func DecodeLoadBalancer(id lb.LoadBalancerID, doc Document) (lb.LoadBalancer, error) {
	rest, texts, err := splitPools(doc.Text)
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	origin := LoadBalancerDocument{Document{doc.Version, rest}, make(map[string]Document, len(texts))}
	b, err := decodeWithoutPools(id, origin.Document)
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	b.Pools = slices.Grow(b.Pools, len(texts))
	for _, text := range texts {
		part := Document{doc.Version, text}
		if pool, ok := scanPool(lb.PoolID{LoadBalancer: id}, part); ok {
			origin.Pools[strings.ToLower(pool.ID.Name)] = part
			b.Pools = append(b.Pools, pool)
			continue
		}
		var pool *armPool
		if err := json.Unmarshal(text, &pool); err != nil {
			return lb.LoadBalancer{}, err
		}
		if pool == nil {
			continue
		}
		origin.Pools[strings.ToLower(pool.Name)] = part
		b.Pools = append(b.Pools, pool.toPool(lb.PoolID{LoadBalancer: id, Name: pool.Name}, part))
	}
	b.Origin = origin
	return b, nil
}

func isGlobalTier(tier string) bool { return strings.EqualFold(tier, "Global") }

func decodeWithoutPools(id lb.LoadBalancerID, doc Document) (lb.LoadBalancer, error) {
	var resource armLoadBalancer
	if err := json.Unmarshal(doc.Text, &resource); err != nil {
		return lb.LoadBalancer{}, err
	}
	p := &resource.Properties
	if len(p.Pools) > 0 { // a write would delete them
		return lb.LoadBalancer{}, errUnexpectedPools
	}
	b := lb.LoadBalancer{
		ID: id, Etag: etagOrAny(resource.Etag), Location: resource.Location, SKU: cmp.Or(resource.SKU.Name, lb.Basic), Global: isGlobalTier(resource.SKU.Tier), ExtendedLocation: resource.Extended.Name,
		Tags: decodeTags(resource.Tags), Provisioning: provisioningState(p.State), Pinned: map[string]bool{},
	}
	for _, f := range p.Frontends {
		if f != nil {
			b.Frontends = append(b.Frontends, f.toFrontend())
		}
	}
	for _, probe := range p.Probes {
		if probe != nil {
			b.Probes = append(b.Probes, probe.toProbe())
		}
	}
	for _, r := range p.Rules {
		if r != nil {
			b.Rules = append(b.Rules, r.toRule())
		}
	}
	p.addPinned(b.Pinned)
	b.NATRules = p.countNATRules()
	return b, nil
}

func (p *armLoadBalancerProperties) countNATRules() map[string]int {
	n, single := map[string]int{}, map[string]int{}
	for _, r := range p.NATRules {
		if pool := r.Properties.Pool.lastSegment(); pool != "" {
			n[strings.ToLower(pool)]++
		} else if configuration := strings.ToLower(r.Properties.Configuration.ID); configuration != "" {
			single[configuration]++
			n[""] = max(n[""], single[configuration])
		}
	}
	if len(n) == 0 {
		return nil
	}
	return n
}

// addPinned records what unmodeled resources use. Azure does not show references from other resources,
// but rejects removals.
func (p *armLoadBalancerProperties) addPinned(pinned map[string]bool) {
	add := func(references ...armReference) {
		for _, r := range references {
			if name := r.lastSegment(); name != "" {
				pinned[strings.ToLower(name)] = true
			}
		}
	}
	for _, uses := range [][]armReferrer{p.Outbound, p.NATRules, p.NATPools} {
		for _, use := range uses {
			add(use.Properties.Frontend, use.Properties.Pool)
			add(use.Properties.Frontends...)
		}
	}
	// Rules of a gateway load balancer have two pools; lb.Rule holds one.
	for _, r := range p.Rules {
		if r == nil {
			continue
		}
		for _, pool := range r.Properties.Pools {
			if !strings.EqualFold(pool.lastSegment(), r.poolName()) {
				add(pool)
			}
		}
	}
}

func (a armFrontend) toFrontend() lb.Frontend {
	p := a.Properties
	f := lb.Frontend{Name: a.Name, Zones: a.Zones, PublicIP: p.PublicIP.ID, Subnet: p.Subnet.ID, Family: p.Version}
	if p.Gateway.ID != "" {
		f.GatewayLoadBalancer = &p.Gateway.ID
	}
	f.PrivateIP, _ = netip.ParseAddr(p.IP)
	f.Static = f.Subnet != "" && p.Method == staticMethod
	if f.Family == "" && f.Subnet != "" {
		f.Family = lb.IPv4 // Azure's default; a public frontend has the family of its public IP
	}
	return f
}

func (a armProbe) toProbe() lb.Probe {
	p := a.Properties
	if strings.EqualFold(string(p.AllDown), string(lb.AllProbedUp)) {
		p.AllDown = lb.AllProbedUp
	}
	return lb.Probe{
		Name: a.Name, Protocol: p.Protocol, Port: p.Port, Path: p.Path, IntervalSeconds: p.Interval,
		// Azure uses the threshold (documented); older clients set numberOfProbes.
		Threshold: cmp.Or(p.Threshold, p.Probes), NoHealthyBackends: p.AllDown,
	}
}

func (a armRule) poolName() string {
	if name := a.Properties.Pool.lastSegment(); name != "" || len(a.Properties.Pools) == 0 {
		return name
	}
	return a.Properties.Pools[0].lastSegment()
}

func (a armRule) toRule() lb.Rule {
	p := a.Properties
	return lb.Rule{
		Name: a.Name, Transport: p.Protocol, Frontend: p.Frontend.lastSegment(), Pool: a.poolName(), Probe: p.Probe.lastSegment(),
		FrontendPort: p.FrontendPort, BackendPort: p.BackendPort, FloatingIP: p.FloatingIP, DisableOutboundSNAT: p.DisableOutboundSNAT,
		IdleMinutes: cmp.Or(p.IdleMinutes, 4), Distribution: cmp.Or(p.Distribution, lb.Spread), TCPReset: p.TCPReset, ConnectionTracking: p.ConnectionTracking,
	}
}
