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
		if err := b.survey(ctx); err != nil {
			return "", nil, err
		}
	}
	// Whoever leaves leaves for good: what the record does not tell, because somebody edited
	// it while nobody watched, would stay for ever.
	if len(where) == 0 || p.Desired == nil {
		for _, name := range b.atlas.holding(p.Owner) {
			if !containsFold(where, name) {
				where = append(where, name)
			}
		}
	}
	if p.Desired == nil && len(where) == 0 {
		b.atlas.remove(p.Service)
		return "", nil, nil
	}
	if p.Desired == nil {
		b.atlas.put(p.Service, spot{at: lower(where), owner: p.Owner})
		return "", where, nil
	}
	for _, unfit := range []func(context.Context, Placing) error{b.mayName, b.unenforced} {
		if err := unfit(ctx, p); err != nil {
			return "", nil, err
		}
	}
	configuration := b.cfg.Configurations[0].Name
	if multiple {
		pinned, err := b.pinned(ctx, *p.Desired)
		if err != nil {
			return "", nil, err
		}
		b.atlas.mu.Lock()
		defer b.atlas.mu.Unlock()
		configuration, err = service.Place(service.Candidate{
			Labels: p.Labels, NamespaceLabels: p.NamespaceLabels, Desired: *p.Desired,
			Current: b.current(where), Pinned: pinned,
		}, b.cfg.Configurations, b.occupied(p), b.cfg.MostRules)
		if err != nil {
			return "", nil, err
		}
	} else {
		b.atlas.mu.Lock()
		defer b.atlas.mu.Unlock()
	}
	on = service.LoadBalancerName(configuration, p.Desired.Internal)
	b.atlas.putLocked(p.Service, spot{at: lower([]string{on}), owner: p.Owner, rules: len(p.Desired.Rules)})
	for _, name := range where {
		if !equalFold(name, on) {
			leave = append(leave, name)
		}
	}
	return on, leave, nil
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

// names are those of all load balancers that are the cluster's.
func (s Settings) names() []string {
	var all []string
	for _, c := range s.Configurations {
		all = append(all, service.LoadBalancerName(c.Name, false), service.LoadBalancerName(c.Name, true))
	}
	return all
}

// ids are those of all load balancers that are the cluster's.
func (s Settings) ids() []lb.LoadBalancerID {
	var all []lb.LoadBalancerID
	for _, name := range s.names() {
		id := s.Place
		id.Name = name
		all = append(all, id)
	}
	return all
}

// survey reads all load balancers of the resource group, once. Those of others are not
// looked at.
func (b *Balancers) survey(ctx context.Context) error {
	select {
	case b.atlas.reading <- struct{}{}:
		defer func() { <-b.atlas.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b.atlas.mu.Lock()
	read := b.atlas.read
	b.atlas.mu.Unlock()
	if read {
		return nil
	}
	all, err := b.cfg.Azure.ListLoadBalancers(ctx, b.cfg.Place.SubscriptionID, b.cfg.Place.ResourceGroup)
	if err != nil {
		return fmt.Errorf("load balancers of resource group %s: %w", b.cfg.Place.ResourceGroup, err)
	}
	b.atlas.mu.Lock()
	defer b.atlas.mu.Unlock()
	b.atlas.read, b.atlas.nodes = true, b.cfg.nodePlaces(all)
	for _, balancer := range all {
		if containsFold(b.cfg.names(), balancer.ID.Name) {
			b.atlas.sawLocked(balancer)
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

// occupied counts the rules of others on each configuration. The caller holds the atlas.
func (b *Balancers) occupied(p Placing) map[string]service.Occupancy {
	all := map[string]service.Occupancy{}
	known := map[string]bool{p.Owner: true}
	rules := map[string]int{}
	for key, s := range b.atlas.placed {
		known[s.owner] = true
		if key != p.Service && len(s.at) > 0 {
			rules[s.at[0]] += s.rules
		}
	}
	for _, c := range b.cfg.Configurations {
		name := strings.ToLower(service.LoadBalancerName(c.Name, p.Desired.Internal))
		shown, exists := b.atlas.shown[name]
		o := service.Occupancy{Exists: exists, Rules: rules[name]}
		for _, r := range shown.Rules {
			owner, _, _ := strings.Cut(r.Name, "-")
			if !known[owner] {
				o.Rules++
			}
		}
		all[c.Name] = o
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
		if name := b.atlas.having(id, f.Frontend.Subnet, ip); name != "" {
			return b.current([]string{name}), nil
		}
	}
	return "", nil
}
