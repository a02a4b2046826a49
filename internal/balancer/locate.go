// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// Placing describes the Service to place.
type Placing struct {
	Service, Owner          string
	Labels, NamespaceLabels map[string]string
	Desired                 *service.Spec
	// Recorded are the load balancers that may hold parts of the Service, the assigned one first. If empty,
	// Azure is read.
	Recorded []string
}

// locateDeadline limits how long a Service waits for the lists it needs when Azure does not respond.
const locateDeadline = time.Minute

// Locate returns the name of the load balancer that a Service belongs to, empty if it leaves, and the load
// balancers to remove it from. An error without a *fault.Fault is a problem of the Service.
func (b *Balancers) Locate(ctx context.Context, p Placing) (on string, removeFrom []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, locateDeadline)
	defer cancel()
	multiple := service.Places(b.cfg.Configurations)
	// A user who can edit a Service can edit its record: ignore load balancers of other clusters.
	where := slices.DeleteFunc(slices.Clone(p.Recorded), func(name string) bool { return !containsFold(b.cfg.names(), name) })
	if len(where) == 0 || multiple || p.Desired == nil {
		if err := b.readAll(ctx); err != nil {
			return "", nil, err
		}
	}
	// Removal is final: include load balancers missing from an edited record.
	if len(where) == 0 || p.Desired == nil {
		for _, name := range b.placements.holding(p.Owner) {
			if !containsFold(where, name) {
				where = append(where, name)
			}
		}
	}
	if p.Desired == nil && len(where) == 0 {
		b.placements.remove(p.Service)
		return "", nil, nil
	}
	if p.Desired == nil {
		b.placements.put(p.Service, placement{at: lower(where), owner: p.Owner})
		return "", where, nil
	}
	if err := b.guardable(ctx, p); err != nil {
		return "", nil, err
	}
	configuration := b.cfg.Configurations[0].Name
	rules, frontends := len(p.Desired.Rules), len(p.Desired.Frontends)
	if multiple {
		pinned, err := b.pinned(ctx, *p.Desired)
		if err != nil {
			return "", nil, err
		}
		b.placements.mu.Lock()
		defer b.placements.mu.Unlock()
		occupied := b.occupied(p)
		configuration, err = service.Place(service.Candidate{
			Labels: p.Labels, NamespaceLabels: p.NamespaceLabels, Desired: *p.Desired,
			Current: b.current(where), Pinned: pinned,
		}, b.cfg.Configurations, occupied, b.cfg.MostRules)
		if err != nil {
			return "", nil, err
		}
		// A Service that is rejected where it is, or has its address there, needs no free capacity.
		if occupied[configuration].Exceeded != nil {
			rules, frontends = b.placements.hasLocked(service.LoadBalancerName(configuration, p.Desired.Internal), p.Owner)
		}
	} else {
		b.placements.mu.Lock()
		defer b.placements.mu.Unlock()
	}
	on = service.LoadBalancerName(configuration, p.Desired.Internal)
	b.placements.putLocked(p.Service, placement{at: lower([]string{on}), owner: p.Owner, rules: rules, frontends: frontends})
	for _, name := range where {
		if !strings.EqualFold(name, on) {
			removeFrom = append(removeFrom, name)
		}
	}
	if len(removeFrom) > 0 { // before it is removed from its load balancers
		if err := b.exceedsLocked(p, on); err != nil {
			return "", nil, err
		}
	}
	return on, removeFrom, nil
}

// guardable returns why the security group cannot enforce the Service's restrictions, before anything is made
// for it. nil without a group.
func (b *Balancers) guardable(ctx context.Context, p Placing) error {
	if b.group == nil {
		return nil
	}
	err := b.group.MayName(p.Service, p.Desired.Access, func() (map[netip.Addr]string, error) {
		return b.ips.OfOthers(ctx, p.Service, p.Owner, p.Desired)
	})
	if err != nil {
		return err
	}
	if err := b.group.Unenforced(ctx, p.Desired.Access); err != nil {
		return err
	}
	return b.group.Admits(ctx, p.Service, p.Owner, p.Desired)
}

// Forget drops the placement of a deleted Service and its capacity in the security group. Azure holds nothing
// of it.
func (b *Balancers) Forget(name, owner string) {
	b.placements.remove(name)
	if b.group != nil {
		b.group.Forget(owner)
	}
}

// Reads returns nil if the public IPs of a resource group can be read. A Service with an unreadable group on
// record, for example a misspelled name, could never be deleted.
func (b *Balancers) Reads(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, locateDeadline)
	defer cancel()
	if _, err := b.cfg.Azure.ListPublicIPs(ctx, b.cfg.PublicIPs.SubscriptionID, group); err != nil {
		return fmt.Errorf("%s: public IPs of resource group %s: %w", service.PIPResourceGroup, group, err)
	}
	return nil
}

// ID returns the ID of one of the cluster's load balancers.
func (b *Balancers) ID(name string) lb.LoadBalancerID {
	id := b.cfg.Place
	id.Name = name
	return id
}

// Names returns the names of the cluster's load balancers.
func (b *Balancers) Names() []string { return b.cfg.names() }

// readAll reads all load balancers of the resource group once and ignores foreign ones.
func (b *Balancers) readAll(ctx context.Context) error {
	select {
	case b.placements.reading <- struct{}{}:
		defer func() { <-b.placements.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b.placements.mu.Lock()
	read := b.placements.read
	b.placements.mu.Unlock()
	if read {
		return nil
	}
	all, err := b.cfg.Azure.ListLoadBalancers(ctx, b.cfg.Place.SubscriptionID, b.cfg.Place.ResourceGroup)
	if err != nil {
		return fmt.Errorf("load balancers of resource group %s: %w", b.cfg.Place.ResourceGroup, err)
	}
	nodes, err := b.cfg.nodePlaces(ctx, b.cfg.Azure, all)
	if err != nil {
		return err
	}
	b.placements.mu.Lock()
	defer b.placements.mu.Unlock()
	b.placements.read, b.placements.nodes = true, nodes
	for _, balancer := range all {
		if containsFold(b.cfg.names(), balancer.ID.Name) {
			b.placements.sawLocked(balancer)
		}
	}
	return nil
}

func (b *Balancers) current(where []string) string {
	for _, name := range where {
		if c, ok := service.ConfigurationOf(name, b.cfg.Configurations); ok {
			return c.Name
		}
	}
	return ""
}

// occupied counts the rules of other Services per configuration. The caller holds the lock of the placements.
func (b *Balancers) occupied(p Placing) map[string]service.Occupancy {
	all := map[string]service.Occupancy{}
	known := map[string]bool{p.Owner: true}
	used := map[string]plan.Usage{} // by load balancer
	count := func(name, namespace string, rules, frontends int) {
		if used[name] == nil {
			used[name] = plan.Usage{}
		}
		used[name].Add(namespace, rules, frontends)
	}
	for key, s := range b.placements.placed {
		known[s.owner] = true
		if key != p.Service && len(s.at) > 0 {
			count(s.at[0], namespaceOf(key), s.rules, s.frontends)
		}
	}
	in := b.boundsInput("")
	for _, c := range b.cfg.Configurations {
		name := strings.ToLower(service.LoadBalancerName(c.Name, p.Desired.Internal))
		observed, exists := b.placements.shown[name]
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
		all[c.Name] = service.Occupancy{
			Exists: exists, HasFrontend: len(observed.Frontends) > 0, Rules: used[name].Rules(),
			Exceeded: plan.ExceedsBound(in, used[name], namespaceOf(p.Service), len(p.Desired.Rules), len(p.Desired.Frontends)),
		}
	}
	return all
}

func (b *Balancers) pinned(ctx context.Context, w service.Spec) (string, error) {
	for _, f := range w.Frontends {
		id, ip := "", netip.Addr{}
		switch {
		case f.PublicIP == nil && f.Frontend.Static:
			ip = f.Frontend.PrivateIP
		case f.PublicIP != nil && f.PublicIP.Named:
			id = f.PublicIP.ID.String()
		case f.PublicIP != nil && f.PublicIP.Address.IsValid():
			all, err := b.cfg.Azure.ListPublicIPs(ctx, f.PublicIP.ID.SubscriptionID, f.PublicIP.ID.ResourceGroup)
			if err != nil {
				return "", err
			}
			for _, known := range all {
				if known.Address == f.PublicIP.Address {
					id = known.ID.String()
				}
			}
		}
		if id == "" && !ip.IsValid() {
			continue
		}
		if name := b.placements.having(id, f.Frontend.Subnet, ip); name != "" {
			return b.current([]string{name}), nil
		}
	}
	return "", nil
}
