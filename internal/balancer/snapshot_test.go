// SPDX-License-Identifier: Apache-2.0

package balancer_test

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/service"
)

func (p *process) Owners() []string {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	var owners []string
	for _, r := range p.stage.services {
		owners = append(owners, r.Owner())
	}
	slices.Sort(owners)
	return owners
}

// Fresh implements balancer.Cluster: two nodes, or the first one for a Service's own pool. A BackendPool fills
// its pool itself.
func (p *process) Fresh(_ string, on lb.LoadBalancerID, pool service.Pool) []lb.Address {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	if p.stage.backends[on.Name+"/"+pool.Name] != nil {
		return nil
	}
	return p.stage.members(pool)
}

// Awaits implements balancer.Cluster. Without BackendPools there is no wait.
func (p *process) Awaits(_ string, _ lb.LoadBalancerID, pool service.Pool, is lb.Pool) bool {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	up := func(a lb.Address) bool { return a.AdminState != lb.Down }
	shall := p.stage.members(pool)
	return p.stage.backends != nil && slices.ContainsFunc(shall, up) && len(shall)-len(is.Addresses) > len(shall)/10
}

// Converts implements balancer.Cluster; scripts set how nodes become members.
func (p *process) Converts(pool lb.PoolID) (is, paused bool) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	return p.stage.otherKind[pool.LoadBalancer.Name+"/"+pool.Name], false
}

func (p *process) Reached() []balancer.Reached {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	var all []balancer.Reached
	for name, r := range p.stage.services {
		reached := balancer.Reached{Owner: r.Owner(), Service: name, Addresses: r.status, Additional: service.AdditionalOf(r.Annotations[service.AdditionalIPs])}
		for _, port := range r.Ports {
			reached.NodePorts = append(reached.NodePorts, port.NodePort)
		}
		all = append(all, reached)
	}
	return all
}

func (p *process) Bounds(namespace string) bound.Settings {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	if p.stage.unbounded {
		return bound.Read(namespace, map[string]string{bound.MaxRules: "1500", bound.MaxFrontends: "600", bound.MaxSecurityRules: "1000"})
	}
	return bound.Read(namespace, p.stage.bounds[namespace])
}

func (p *process) Sharers(owners map[string]bool) map[string]privatelink.Sharer {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]privatelink.Sharer{}
	for name, r := range s.services {
		if owner := strings.ToLower(r.Owner()); owners[owner] && !r.deleted {
			spec, problems := service.Desired(r.Service, s.settings.Settings)
			is := privatelink.SharerOf(name, s.start.Add(time.Duration(r.rank)*time.Second), spec, problems)
			is.Local, is.Recorded = r.Local, r.owns
			is.Held = r.held
			all[owner] = is
		}
	}
	return all
}

func (p *process) Nodes() []netip.Addr {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	return p.stage.nodes
}

func (p *process) NodesOf(lb.LoadBalancerID, bool) ([]netip.Addr, bool) {
	nodes := p.Nodes()
	return nodes, nodes != nil
}
