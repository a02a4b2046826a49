// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// Reader reads what load balancers need from Azure; see loadbalancer.Azure.
type Reader interface {
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error)
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
}

// Shadow reads Azure once per resource, and keeps writes in memory for later reads: a plan without
// a second planner.
type Shadow struct {
	reader         Reader
	mu             chan struct{}
	loadBalancers  map[lb.LoadBalancerKey]*ResourceChange[lb.LoadBalancer]
	publicIPs      map[string]*ResourceChange[lb.PublicIP]
	securityGroups map[string]*ResourceChange[lb.SecurityGroup]
	// listErrors are the lists read, with their errors.
	listErrors   map[string]error
	placeholders map[netip.Addr]string
	poolWrites   int
}

// NewShadow returns a Shadow of of.
func NewShadow(of Reader) *Shadow {
	return &Shadow{
		reader: of, mu: make(chan struct{}, 1), listErrors: map[string]error{}, placeholders: map[netip.Addr]string{},
		loadBalancers: map[lb.LoadBalancerKey]*ResourceChange[lb.LoadBalancer]{}, publicIPs: map[string]*ResourceChange[lb.PublicIP]{},
		securityGroups: map[string]*ResourceChange[lb.SecurityGroup]{},
	}
}

func (s *Shadow) lock() (unlock func()) {
	s.mu <- struct{}{}
	return func() { <-s.mu }
}

// plannedEtag is the etag of created resources.
const plannedEtag = "planned"

func newNotFound(kind string) error {
	return &armerror.Fault{Class: armerror.Stale, Code: "ResourceNotFound", Reason: "not_found", Err: errors.New(kind + " is not there")}
}

// Enter implements Azure: planned writes never wait.
func (s *Shadow) Enter(lb.LoadBalancerID) (time.Time, string) { return time.Time{}, "" }

// GetLoadBalancer implements Azure.
func (s *Shadow) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	defer s.lock()()
	known := s.loadBalancers[id.Key()]
	if known == nil {
		balancer, err := s.reader.GetLoadBalancer(ctx, id)
		if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
			return lb.LoadBalancer{}, err
		}
		known = s.addLoadBalancer(id, balancer)
	}
	if known.After.Etag == "" {
		return lb.LoadBalancer{}, newNotFound("load balancer " + id.Name)
	}
	return known.After, nil
}

func (s *Shadow) addLoadBalancer(id lb.LoadBalancerID, balancer lb.LoadBalancer) *ResourceChange[lb.LoadBalancer] {
	balancer.ID = id
	s.loadBalancers[id.Key()] = &ResourceChange[lb.LoadBalancer]{Before: balancer, After: balancer}
	return s.loadBalancers[id.Key()]
}

// ListLoadBalancers implements Azure.
func (s *Shadow) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	defer s.lock()()
	err := s.listOnce("load balancers", subscription, resourceGroup, func() error {
		loadBalancers, err := s.reader.ListLoadBalancers(ctx, subscription, resourceGroup)
		for _, b := range loadBalancers {
			if s.loadBalancers[b.ID.Key()] == nil {
				s.addLoadBalancer(b.ID, b)
			}
		}
		return err
	})
	var balancers []lb.LoadBalancer
	for _, key := range slices.Sorted(maps.Keys(s.loadBalancers)) {
		b := s.loadBalancers[key].After
		if b.Etag != "" && strings.EqualFold(b.ID.SubscriptionID, subscription) && strings.EqualFold(b.ID.ResourceGroup, resourceGroup) {
			balancers = append(balancers, b)
		}
	}
	return balancers, err
}

// listOnce reads a list once, unless it failed. A missing resource group is no failure.
func (s *Shadow) listOnce(kind, subscription, resourceGroup string, read func() error) error {
	key := strings.ToLower(kind + "/" + subscription + "/" + resourceGroup)
	err, done := s.listErrors[key]
	if done {
		return err
	}
	err = read()
	if f := armerror.FromError(err); f == nil || f.Class == armerror.Stale {
		s.listErrors[key] = err
	}
	return err
}

// PutLoadBalancer implements Azure.
func (s *Shadow) PutLoadBalancer(_ context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	defer s.lock()()
	known := s.loadBalancers[b.ID.Key()]
	if known == nil {
		known = s.addLoadBalancer(b.ID, lb.LoadBalancer{})
	}
	b.Frontends = slices.Clone(b.Frontends)
	for i, f := range b.Frontends {
		if f.PublicIP == "" && !f.PrivateIP.IsValid() {
			b.Frontends[i].PrivateIP = s.newPlaceholder(f.Family, "frontend "+f.Name)
		}
	}
	b.Etag, b.Provisioning = cmp.Or(b.Etag, plannedEtag), lb.Succeeded
	known.After = b
	return b, nil
}

// DeleteLoadBalancer implements Azure.
func (s *Shadow) DeleteLoadBalancer(_ context.Context, b lb.LoadBalancer) error {
	defer s.lock()()
	if known := s.loadBalancers[b.ID.Key()]; known != nil {
		known.After = lb.LoadBalancer{ID: b.ID}
	}
	return nil
}

// ListPublicIPs implements Azure.
func (s *Shadow) ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error) {
	defer s.lock()()
	err := s.listOnce("public IPs", subscription, resourceGroup, func() error {
		ips, err := s.reader.ListPublicIPs(ctx, subscription, resourceGroup)
		for _, ip := range ips {
			if s.publicIPs[ip.ID.Key()] == nil {
				s.publicIPs[ip.ID.Key()] = &ResourceChange[lb.PublicIP]{Before: ip, After: ip}
			}
		}
		return err
	})
	var items []lb.PublicIP
	for _, key := range slices.Sorted(maps.Keys(s.publicIPs)) {
		ip := s.publicIPs[key].After
		if ip.Etag == "" || !strings.EqualFold(ip.ID.SubscriptionID, subscription) || !strings.EqualFold(ip.ID.ResourceGroup, resourceGroup) {
			continue
		}
		ip.UsedBy = s.findUser(ip)
		items = append(items, ip)
	}
	return items, err
}

// findUser returns a public IP's user after all writes.
func (s *Shadow) findUser(ip lb.PublicIP) string {
	used := ip.UsedBy
	for _, b := range s.loadBalancers {
		if strings.HasPrefix(strings.ToLower(used), strings.ToLower(b.After.ID.String()+"/")) {
			used = ""
		}
	}
	for _, b := range s.loadBalancers {
		for _, f := range b.After.Frontends {
			if strings.EqualFold(f.PublicIP, ip.ID.String()) {
				used = b.After.ID.String() + "/frontendIPConfigurations/" + f.Name
			}
		}
	}
	return used
}

// PutPublicIP implements Azure, with a placeholder for a new address.
func (s *Shadow) PutPublicIP(_ context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	defer s.lock()()
	known := s.publicIPs[ip.ID.Key()]
	if known == nil {
		known = &ResourceChange[lb.PublicIP]{Before: lb.PublicIP{ID: ip.ID}}
		s.publicIPs[ip.ID.Key()] = known
	}
	if !ip.Address.IsValid() {
		ip.Address = s.newPlaceholder(ip.Family, "public IP "+ip.ID.Name)
	}
	ip.Etag, ip.Provisioning = cmp.Or(ip.Etag, plannedEtag), lb.Succeeded
	known.After = ip
	return ip, nil
}

// DeletePublicIP implements Azure.
func (s *Shadow) DeletePublicIP(_ context.Context, ip lb.PublicIP) error {
	defer s.lock()()
	if known := s.publicIPs[ip.ID.Key()]; known != nil {
		known.After = lb.PublicIP{ID: ip.ID}
	}
	return nil
}

// GetSecurityGroup implements Azure.
func (s *Shadow) GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error) {
	defer s.lock()()
	if known := s.securityGroups[id.Key()]; known != nil {
		return known.After, nil
	}
	group, err := s.reader.GetSecurityGroup(ctx, id)
	if err == nil {
		s.securityGroups[id.Key()] = &ResourceChange[lb.SecurityGroup]{Before: group, After: group}
	}
	return group, err
}

// PutSecurityGroup implements Azure.
func (s *Shadow) PutSecurityGroup(_ context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error) {
	defer s.lock()()
	if known := s.securityGroups[g.ID.Key()]; known != nil {
		known.After = g
	}
	return g, nil
}

// ResolveMachines implements Azure. Writes do not change machines.
func (s *Shadow) ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return s.reader.ResolveMachines(ctx, pool)
}

// ReadPool completes a pool's addresses.
func (s *Shadow) ReadPool(p lb.Pool) {
	defer s.lock()()
	known := s.loadBalancers[p.ID.LoadBalancer.Key()]
	if known == nil {
		return
	}
	for _, b := range []*lb.LoadBalancer{&known.Before, &known.After} {
		b.Pools = slices.Clone(b.Pools)
		for i, pool := range b.Pools {
			if strings.EqualFold(pool.ID.Name, p.ID.Name) && len(pool.Addresses) == len(p.Addresses) {
				b.Pools[i].Addresses = p.Addresses
			}
		}
	}
}

// PutPool writes a known load balancer's pool, and counts changes.
func (s *Shadow) PutPool(p lb.Pool) {
	defer s.lock()()
	known := s.loadBalancers[p.ID.LoadBalancer.Key()]
	if known == nil {
		return
	}
	known.After.Pools = slices.Clone(known.After.Pools)
	for i, pool := range known.After.Pools {
		if strings.EqualFold(pool.ID.Name, p.ID.Name) {
			if !slices.Equal(pool.Addresses, p.Addresses) {
				s.poolWrites++
			}
			known.After.Pools[i] = p
		}
	}
}

// Reserved networks, for placeholders. https://www.rfc-editor.org/rfc/rfc1112#section-4
// https://www.rfc-editor.org/rfc/rfc6666
var (
	reservedIPv4 = netip.MustParseAddr("240.0.0.0")
	reservedIPv6 = netip.MustParseAddr("100::")
)

func (s *Shadow) newPlaceholder(family lb.Family, to string) netip.Addr {
	next := reservedIPv4
	if family == lb.IPv6 {
		next = reservedIPv6
	}
	for {
		next = next.Next()
		if s.placeholders[next] == "" {
			s.placeholders[next] = to
			return next
		}
	}
}
