// SPDX-License-Identifier: Apache-2.0

package loadbalancer_test

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

func (p *process) ServiceOwners() []string {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	var owners []string
	for _, r := range p.stage.services {
		owners = append(owners, r.OwnerName())
	}
	slices.Sort(owners)
	return owners
}

// InitialMembers implements loadbalancer.Cluster: two nodes, or the first one for a Service's own pool. A BackendPool fills
// its pool itself.
func (p *process) InitialMembers(_ string, on lb.LoadBalancerID, pool service.Pool) []lb.Address {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	if p.stage.backends[on.Name+"/"+pool.Name] != nil {
		return nil
	}
	return p.stage.members(pool)
}

// NeedsMembers implements loadbalancer.Cluster. Without BackendPools there is no wait.
func (p *process) NeedsMembers(_ string, _ lb.LoadBalancerID, pool service.Pool, got lb.Pool) bool {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	up := func(a lb.Address) bool { return a.AdminState != lb.Down }
	shall := p.stage.members(pool)
	return p.stage.backends != nil && slices.ContainsFunc(shall, up) && len(shall)-len(got.Addresses) > len(shall)/10
}

// ConversionState implements loadbalancer.Cluster; scripts set how nodes become members.
func (p *process) ConversionState(pool lb.PoolID) (converting, paused bool) {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	return p.stage.otherKind[pool.LoadBalancer.Name+"/"+pool.Name], false
}

// MemberKind implements loadbalancer.Cluster: Azure alone shows it.
func (p *process) MemberKind(lb.PoolID) service.MemberKind { return service.UnknownMembers }

func (p *process) ExposedServices() []loadbalancer.ExposedService {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	var services []loadbalancer.ExposedService
	for name, r := range p.stage.services {
		reached := loadbalancer.ExposedService{Owner: r.OwnerName(), Service: name, Addresses: r.status, Additional: service.ParseAdditional(r.Annotations[service.AdditionalIPs])}
		reached.Requested = service.RequestedPlaces(r.Annotations, r.LoadBalancerIP)
		reached.GatewayLoadBalancers = service.RequestedGatewayLoadBalancers(r.Annotations)
		for _, port := range r.Ports {
			reached.NodePorts = append(reached.NodePorts, port.NodePort)
		}
		services = append(services, reached)
	}
	return services
}

func (p *process) NamespaceBounds(namespace string) service.NamespaceSettings {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	if p.stage.unbounded {
		return service.ParseNamespaceSettings(namespace, map[string]string{service.MaxRules: "1500", service.MaxFrontends: "600", service.MaxSecurityRules: "1000"})
	}
	return service.ParseNamespaceSettings(namespace, p.stage.bounds[namespace])
}

func (p *process) FrontendServices(owners map[string]bool) map[string]desired.FrontendService {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	services := map[string]desired.FrontendService{}
	for name, r := range s.services {
		if owner := strings.ToLower(r.OwnerName()); owners[owner] && !r.deleted {
			spec, problems := service.BuildSpec(r.Service, s.settings.Settings)
			got := desired.NewFrontendService(name, s.start.Add(time.Duration(r.rank)*time.Second), spec, problems)
			got.Local, got.IsRecordedOwner = r.Local, r.owns
			got.Frozen = r.held
			services[owner] = got
		}
	}
	return services
}

func (p *process) NodeAddresses() []netip.Addr {
	p.stage.mu.Lock()
	defer p.stage.mu.Unlock()
	return p.stage.nodes
}

func (p *process) NodesOf(_ lb.LoadBalancerID, anywhere bool) ([]netip.Addr, bool) {
	nodes := p.NodeAddresses()
	if !anywhere && p.stage.placed != nil {
		nodes = p.stage.placed
	}
	return nodes, nodes != nil
}
