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

// Placing asks where a Service belongs.
type Placing struct {
	Service, Owner          string
	Labels, NamespaceLabels map[string]string
	// Desired is nil if the Service leaves.
	Desired *service.Spec
	// Recorded are the load balancers, by name, that may hold parts of the Service, the
	// first being that where it belongs; empty if nothing is recorded, and Azure is asked.
	Recorded []string
}

// locateDeadline bounds what a Service waits for the lists that it needs: where Azure falls
// silent, whoever asked can do something else.
const locateDeadline = time.Minute

// Locate returns the load balancer, by name, where a Service belongs, which is empty if it
// leaves, and those that it has to leave. An error without a *fault.Fault is about the
// Service.
func (b *Balancers) Locate(ctx context.Context, p Placing) (on string, leave []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, locateDeadline)
	defer cancel()
	multiple := service.Places(b.cfg.Configurations)
	// Whoever may edit a Service may edit its record: it never leads to a load balancer that
	// is not the cluster's.
	where := slices.DeleteFunc(slices.Clone(p.Recorded), func(name string) bool { return !containsFold(b.cfg.names(), name) })
	if len(where) == 0 || multiple || p.Desired == nil {
		if err := b.readAll(ctx); err != nil {
			return "", nil, err
		}
	}
	// Whoever leaves leaves for good: what the record does not tell, because somebody edited
	// it while nobody watched, would stay for ever.
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
		// One that is refused where it is, or has its address, takes no room of others there.
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
			leave = append(leave, name)
		}
	}
	if len(leave) > 0 { // before it leaves what it has
		if err := b.exceedsLocked(p, on); err != nil {
			return "", nil, err
		}
	}
	return on, leave, nil
}

// guardable returns why the security group would not keep a Service as it says: before anything is
// made for it. Without a group nothing follows from what it says.
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

// Forget drops the place of a Service, and the room promised to it in the security group. The Service is gone, and nothing
// of it is in Azure.
func (b *Balancers) Forget(name, owner string) {
	b.placements.remove(name)
	if b.group != nil {
		b.group.Forget(owner)
	}
}

// Reads returns nil if the public IPs of a resource group can be read. One that cannot, say
// because its name is mistyped, would hold a Service for ever once it is on record.
func (b *Balancers) Reads(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, locateDeadline)
	defer cancel()
	if _, err := b.cfg.Azure.ListPublicIPs(ctx, b.cfg.PublicIPs.SubscriptionID, group); err != nil {
		return fmt.Errorf("%s: public IPs of resource group %s: %w", service.PIPResourceGroup, group, err)
	}
	return nil
}

// ID is the id of one of the cluster's load balancers.
func (b *Balancers) ID(name string) lb.LoadBalancerID {
	id := b.cfg.Place
	id.Name = name
	return id
}

// Names are those of all load balancers that are the cluster's.
func (b *Balancers) Names() []string { return b.cfg.names() }

// readAll reads all load balancers of the resource group, once. Those of others are not
// looked at.
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

// current is the configuration of the first of these load balancers.
func (b *Balancers) current(where []string) string {
	for _, name := range where {
		if c, ok := service.ConfigurationOf(name, b.cfg.Configurations); ok {
			return c.Name
		}
	}
	return ""
}

// occupied counts the rules of others on each configuration. The caller holds the lock of the placements.
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
		shown, exists := b.placements.shown[name]
		for _, r := range shown.Rules {
			if owner, _, _ := strings.Cut(r.Name, "-"); !known[owner] {
				count(name, namespaceOf(in.ServiceOf(r.Name)), 1, 0)
			}
		}
		for _, f := range shown.Frontends {
			if owner, _, _ := strings.Cut(f.Name, "-"); !known[owner] {
				count(name, namespaceOf(in.ServiceOf(f.Name)), 0, 1)
			}
		}
		in.Observed.ID.Name = service.LoadBalancerName(c.Name, p.Desired.Internal)
		all[c.Name] = service.Occupancy{
			Exists: exists, HasFrontend: len(shown.Frontends) > 0, Rules: used[name].Rules(),
			Exceeded: plan.ExceedsBound(in, used[name], namespaceOf(p.Service), len(p.Desired.Rules), len(p.Desired.Frontends)),
		}
	}
	return all
}

// pinned is the configuration whose load balancer has an address that a Service asks for.
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
