// SPDX-License-Identifier: Apache-2.0

package loadbalancer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// PlacementRequest describes the Service to place.
type PlacementRequest struct {
	Service, Owner          string
	Labels, NamespaceLabels map[string]string
	Desired                 *service.Spec
	// LoadBalancers are the load balancers that may hold parts of the Service, the assigned one first. If empty,
	// Azure is read.
	LoadBalancers []string
}

// placementTimeout limits how long a Service waits for the lists it needs when Azure does not respond.
const placementTimeout = time.Minute

// FindPlacement returns the name of the load balancer that a Service belongs to, empty if it leaves, and the load
// balancers to remove it from. An error without a *armerror.Fault is a problem of the Service.
func (b *LoadBalancers) FindPlacement(ctx context.Context, p PlacementRequest) (on string, removeFrom []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, placementTimeout)
	defer cancel()
	multiple := service.HasPlacementChoice(b.cfg.Configurations)
	// A user who can edit a Service can edit its record: ignore load balancers of other clusters.
	where := slices.DeleteFunc(slices.Clone(p.LoadBalancers), func(name string) bool { return !containsFold(b.cfg.loadBalancerNames(), name) })
	if len(where) == 0 || multiple || p.Desired == nil {
		if err := b.readAll(ctx); err != nil {
			return "", nil, err
		}
	}
	// Removal is final: include load balancers missing from an edited record.
	if len(where) == 0 || p.Desired == nil {
		for _, name := range b.cache.loadBalancersOf(p.Owner) {
			if !containsFold(where, name) {
				where = append(where, name)
			}
		}
	}
	if p.Desired == nil && len(where) == 0 {
		b.cache.removePlacement(p.Service)
		return "", nil, nil
	}
	if p.Desired == nil {
		b.cache.setPlacement(p.Service, placement{at: lowerCase(where), owner: p.Owner})
		return "", where, nil
	}
	if err := b.checkRestrictions(ctx, p); err != nil {
		return "", nil, err
	}
	configuration := b.cfg.Configurations[0].Name
	rules, frontends := len(p.Desired.Rules), len(p.Desired.Frontends)
	if multiple {
		pinned, err := b.pinnedConfiguration(ctx, p, len(where) == 0)
		if err != nil {
			return "", nil, err
		}
		b.cache.mu.Lock()
		defer b.cache.mu.Unlock()
		occupied := b.countOccupancy(p)
		configuration, err = service.ChooseConfiguration(service.Candidate{
			Labels: p.Labels, NamespaceLabels: p.NamespaceLabels, Desired: *p.Desired,
			Current: b.currentConfiguration(where), RequestedConfiguration: pinned,
		}, b.cfg.Configurations, occupied, b.cfg.MaxRules)
		if err != nil {
			return "", nil, err
		}
		// A Service that is rejected where it is, or has its address there, needs no free capacity.
		if occupied[configuration].Exceeded != nil {
			rules, frontends = b.cache.countPartsLocked(service.LoadBalancerName(configuration, p.Desired.Internal), p.Owner)
		}
	} else {
		b.cache.mu.Lock()
		defer b.cache.mu.Unlock()
	}
	on = service.LoadBalancerName(configuration, p.Desired.Internal)
	b.cache.putLocked(p.Service, placement{at: lowerCase([]string{on}), owner: p.Owner, rules: rules, frontends: frontends})
	for _, name := range where {
		if !strings.EqualFold(name, on) {
			removeFrom = append(removeFrom, name)
		}
	}
	if len(removeFrom) > 0 { // before it is removed from its load balancers
		if err := b.checkLimitsLocked(p, on); err != nil {
			return "", nil, err
		}
	}
	return on, removeFrom, nil
}

// checkRestrictions returns why the security group cannot enforce the Service's restrictions, before anything is made
// for it. nil without a group.
func (b *LoadBalancers) checkRestrictions(ctx context.Context, p PlacementRequest) error {
	if b.group == nil {
		return nil
	}
	err := b.group.CheckAdditional(p.Service, p.Desired.Access, func() (map[netip.Addr]string, error) {
		return b.publicIPManager.ForeignAddresses(ctx, p.Service, p.Owner, p.Desired)
	})
	if err != nil {
		return err
	}
	if err := b.group.CheckEffective(ctx, p.Desired.Access); err != nil {
		return err
	}
	return b.group.CheckCapacity(ctx, p.Service, p.Owner, p.Desired)
}

// ForgetService drops the placement of a deleted Service and its capacity in the security group. Azure holds nothing
// of it.
func (b *LoadBalancers) ForgetService(name, owner string) {
	b.cache.removePlacement(name)
	b.takeovers.removeService(name)
	if b.group != nil {
		b.group.ForgetService(owner)
	}
}

// CheckReadable returns nil if the public IPs of a resource group can be read. A Service with an unreadable group on
// record, for example a misspelled name, could never be deleted.
func (b *LoadBalancers) CheckReadable(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, placementTimeout)
	defer cancel()
	if _, err := b.cfg.Azure.ListPublicIPs(ctx, b.cfg.PublicIPs.SubscriptionID, group); err != nil {
		return fmt.Errorf("%s: public IPs of resource group %s: %w", service.PIPResourceGroup, group, err)
	}
	return nil
}

// ID returns the ID of one of the cluster's load balancers.
func (b *LoadBalancers) ID(name string) lb.LoadBalancerID {
	id := b.cfg.Place
	id.Name = name
	return id
}

// Names returns the names of the cluster's load balancers.
func (b *LoadBalancers) Names() []string { return b.cfg.loadBalancerNames() }

// readAll reads all load balancers of the resource group once and ignores foreign ones.
func (b *LoadBalancers) readAll(ctx context.Context) error {
	select {
	case b.cache.listLock <- struct{}{}:
		defer func() { <-b.cache.listLock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b.cache.mu.Lock()
	read := b.cache.read
	b.cache.mu.Unlock()
	if read {
		return nil
	}
	loadBalancers, err := b.cfg.Azure.ListLoadBalancers(ctx, b.cfg.Place.SubscriptionID, b.cfg.Place.ResourceGroup)
	if err != nil {
		return err
	}
	nodes, err := b.cfg.nodeConfigurations(ctx, b.cfg.Azure, loadBalancers)
	if err != nil {
		return err
	}
	b.cache.mu.Lock()
	defer b.cache.mu.Unlock()
	b.cache.read, b.cache.nodes = true, nodes
	for _, balancer := range loadBalancers {
		if containsFold(b.cfg.loadBalancerNames(), balancer.ID.Name) {
			b.cache.recordStateLocked(balancer)
		}
	}
	return nil
}

func (b *LoadBalancers) currentConfiguration(where []string) string {
	for _, name := range where {
		if c, ok := service.ConfigurationOf(name, b.cfg.Configurations); ok {
			return c.Name
		}
	}
	return ""
}

// countOccupancy counts the rules of other Services per configuration. The caller holds the lock of the placements.
func (b *LoadBalancers) countOccupancy(p PlacementRequest) map[string]service.LoadBalancerUsage {
	usages := map[string]service.LoadBalancerUsage{}
	known := map[string]bool{p.Owner: true}
	used := map[string]plan.Usage{} // by load balancer
	count := func(name, namespace string, rules, frontends int) {
		if used[name] == nil {
			used[name] = plan.Usage{}
		}
		used[name].Add(namespace, rules, frontends)
	}
	for key, s := range b.cache.byService {
		known[s.owner] = true
		if key != p.Service && len(s.at) > 0 {
			count(s.at[0], namespaceOf(key), s.rules, s.frontends)
		}
	}
	in := b.limitsInput("")
	for _, c := range b.cfg.Configurations {
		name := strings.ToLower(service.LoadBalancerName(c.Name, p.Desired.Internal))
		observed, exists := b.cache.observed[name]
		for _, r := range observed.Rules {
			if owner, _, _ := strings.Cut(r.Name, "-"); !known[owner] {
				count(name, namespaceOf(in.ServiceOf(r.Name)), 1, 0)
			}
		}
		for _, f := range observed.Frontends {
			if owner, _, _ := strings.Cut(f.Name, "-"); !known[owner] {
				count(name, namespaceOf(in.ServiceOf(f.Name)), 0, 1)
			}
		}
		in.Observed.ID.Name = service.LoadBalancerName(c.Name, p.Desired.Internal)
		usages[c.Name] = service.LoadBalancerUsage{
			Exists: exists, HasFrontend: len(observed.Frontends) > 0, Rules: used[name].Rules(),
			Exceeded: plan.CheckLimit(in, used[name], namespaceOf(p.Service), len(p.Desired.Rules), len(p.Desired.Frontends)),
		}
	}
	return usages
}

// pinnedConfiguration returns the configuration with an address that a Service requests, or that was
// retained for a new Service.
func (b *LoadBalancers) pinnedConfiguration(ctx context.Context, p PlacementRequest, isNew bool) (string, error) {
	for _, f := range p.Desired.Frontends {
		id, ip := "", netip.Addr{}
		switch {
		case f.PublicIP == nil && f.Frontend.Static:
			ip = f.Frontend.PrivateIP
		case f.PublicIP == nil && isNew:
			if name := b.cache.findRetained(p.Service, f.Frontend.Family); name != "" {
				return b.currentConfiguration([]string{name}), nil
			}
		case f.PublicIP != nil && f.PublicIP.UserNamed:
			id = f.PublicIP.ID.String()
		case f.PublicIP != nil && f.PublicIP.Address.IsValid():
			ips, err := b.cfg.Azure.ListPublicIPs(ctx, f.PublicIP.ID.SubscriptionID, f.PublicIP.ID.ResourceGroup)
			if err != nil {
				return "", err
			}
			for _, known := range ips {
				if known.Address == f.PublicIP.Address {
					id = known.ID.String()
				}
			}
		}
		if id == "" && !ip.IsValid() {
			continue
		}
		if name := b.cache.findAddress(id, f.Frontend.Subnet, ip); name != "" {
			return b.currentConfiguration([]string{name}), nil
		}
	}
	return "", nil
}
