// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// Reader reads what load balancers need from Azure; see balancer.Azure.
type Reader interface {
	GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error)
	ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error)
	ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error)
	GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error)
	Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error)
}

// Shadow reads Azure once per resource, and keeps writes in memory for later reads: a plan without
// a second planner.
type Shadow struct {
	from      Reader
	slot      chan struct{}
	balancers map[lb.LoadBalancerKey]*Changed[lb.LoadBalancer]
	ips       map[string]*Changed[lb.PublicIP]
	groups    map[string]*Changed[lb.SecurityGroup]
	// listed are the lists read, with their errors.
	listed map[string]error
	given  map[netip.Addr]string
	pools  int
}

// NewShadow returns a Shadow of of.
func NewShadow(of Reader) *Shadow {
	return &Shadow{
		from: of, slot: make(chan struct{}, 1), listed: map[string]error{}, given: map[netip.Addr]string{},
		balancers: map[lb.LoadBalancerKey]*Changed[lb.LoadBalancer]{}, ips: map[string]*Changed[lb.PublicIP]{},
		groups: map[string]*Changed[lb.SecurityGroup]{},
	}
}

func (s *Shadow) lock() (unlock func()) {
	s.slot <- struct{}{}
	return func() { <-s.slot }
}

// planned is the etag of created resources.
const planned = "planned"

func notThere(what string) error {
	return &fault.Fault{Class: fault.Stale, Code: "ResourceNotFound", Reason: "not_found", Err: errors.New(what + " is not there")}
}

// Enter implements Azure: planned writes never wait.
func (s *Shadow) Enter(lb.LoadBalancerID) (time.Time, string) { return time.Time{}, "" }

// GetLoadBalancer implements Azure.
func (s *Shadow) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	defer s.lock()()
	known := s.balancers[id.Key()]
	if known == nil {
		is, err := s.from.GetLoadBalancer(ctx, id)
		if f := fault.From(err); f != nil && f.Class != fault.Stale {
			return lb.LoadBalancer{}, err
		}
		known = s.sawBalancer(id, is)
	}
	if known.Is.Etag == "" {
		return lb.LoadBalancer{}, notThere("load balancer " + id.Name)
	}
	return known.Is, nil
}

func (s *Shadow) sawBalancer(id lb.LoadBalancerID, is lb.LoadBalancer) *Changed[lb.LoadBalancer] {
	is.ID = id
	s.balancers[id.Key()] = &Changed[lb.LoadBalancer]{Was: is, Is: is}
	return s.balancers[id.Key()]
}

// ListLoadBalancers implements Azure.
func (s *Shadow) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	defer s.lock()()
	err := s.once("load balancers", subscription, resourceGroup, func() error {
		all, err := s.from.ListLoadBalancers(ctx, subscription, resourceGroup)
		for _, b := range all {
			if s.balancers[b.ID.Key()] == nil {
				s.sawBalancer(b.ID, b)
			}
		}
		return err
	})
	var all []lb.LoadBalancer
	for _, key := range slices.Sorted(maps.Keys(s.balancers)) {
		b := s.balancers[key].Is
		if b.Etag != "" && strings.EqualFold(b.ID.SubscriptionID, subscription) && strings.EqualFold(b.ID.ResourceGroup, resourceGroup) {
			all = append(all, b)
		}
	}
	return all, err
}

// once reads a list once, unless it failed. A missing resource group is no failure.
func (s *Shadow) once(what, subscription, resourceGroup string, read func() error) error {
	key := strings.ToLower(what + "/" + subscription + "/" + resourceGroup)
	err, done := s.listed[key]
	if done {
		return err
	}
	err = read()
	if f := fault.From(err); f == nil || f.Class == fault.Stale {
		s.listed[key] = err
	}
	return err
}

// PutLoadBalancer implements Azure.
func (s *Shadow) PutLoadBalancer(_ context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	defer s.lock()()
	known := s.balancers[b.ID.Key()]
	if known == nil {
		known = s.sawBalancer(b.ID, lb.LoadBalancer{})
	}
	b.Frontends = slices.Clone(b.Frontends)
	for i, f := range b.Frontends {
		if f.PublicIP == "" && !f.PrivateIP.IsValid() {
			b.Frontends[i].PrivateIP = s.give(f.Family, "frontend "+f.Name)
		}
	}
	b.Etag, b.Provisioning = cmp.Or(b.Etag, planned), lb.Succeeded
	known.Is = b
	return b, nil
}

// DeleteLoadBalancer implements Azure.
func (s *Shadow) DeleteLoadBalancer(_ context.Context, b lb.LoadBalancer) error {
	defer s.lock()()
	if known := s.balancers[b.ID.Key()]; known != nil {
		known.Is = lb.LoadBalancer{ID: b.ID}
	}
	return nil
}

// ListPublicIPs implements Azure.
func (s *Shadow) ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error) {
	defer s.lock()()
	err := s.once("public IPs", subscription, resourceGroup, func() error {
		all, err := s.from.ListPublicIPs(ctx, subscription, resourceGroup)
		for _, ip := range all {
			if s.ips[ip.ID.Key()] == nil {
				s.ips[ip.ID.Key()] = &Changed[lb.PublicIP]{Was: ip, Is: ip}
			}
		}
		return err
	})
	var all []lb.PublicIP
	for _, key := range slices.Sorted(maps.Keys(s.ips)) {
		ip := s.ips[key].Is
		if ip.Etag == "" || !strings.EqualFold(ip.ID.SubscriptionID, subscription) || !strings.EqualFold(ip.ID.ResourceGroup, resourceGroup) {
			continue
		}
		ip.UsedBy = s.usedBy(ip)
		all = append(all, ip)
	}
	return all, err
}

// usedBy returns a public IP's user after all writes.
func (s *Shadow) usedBy(ip lb.PublicIP) string {
	used := ip.UsedBy
	for _, b := range s.balancers {
		if strings.HasPrefix(strings.ToLower(used), strings.ToLower(b.Is.ID.String()+"/")) {
			used = ""
		}
	}
	for _, b := range s.balancers {
		for _, f := range b.Is.Frontends {
			if strings.EqualFold(f.PublicIP, ip.ID.String()) {
				used = b.Is.ID.String() + "/frontendIPConfigurations/" + f.Name
			}
		}
	}
	return used
}

// PutPublicIP implements Azure, with a placeholder for a new address.
func (s *Shadow) PutPublicIP(_ context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	defer s.lock()()
	known := s.ips[ip.ID.Key()]
	if known == nil {
		known = &Changed[lb.PublicIP]{Was: lb.PublicIP{ID: ip.ID}}
		s.ips[ip.ID.Key()] = known
	}
	if !ip.Address.IsValid() {
		ip.Address = s.give(ip.Family, "public IP "+ip.ID.Name)
	}
	ip.Etag, ip.Provisioning = cmp.Or(ip.Etag, planned), lb.Succeeded
	known.Is = ip
	return ip, nil
}

// DeletePublicIP implements Azure.
func (s *Shadow) DeletePublicIP(_ context.Context, ip lb.PublicIP) error {
	defer s.lock()()
	if known := s.ips[ip.ID.Key()]; known != nil {
		known.Is = lb.PublicIP{ID: ip.ID}
	}
	return nil
}

// GetSecurityGroup implements Azure.
func (s *Shadow) GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error) {
	defer s.lock()()
	if known := s.groups[id.Key()]; known != nil {
		return known.Is, nil
	}
	is, err := s.from.GetSecurityGroup(ctx, id)
	if err == nil {
		s.groups[id.Key()] = &Changed[lb.SecurityGroup]{Was: is, Is: is}
	}
	return is, err
}

// PutSecurityGroup implements Azure.
func (s *Shadow) PutSecurityGroup(_ context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error) {
	defer s.lock()()
	if known := s.groups[g.ID.Key()]; known != nil {
		known.Is = g
	}
	return g, nil
}

// Machines implements Azure. Writes do not change machines.
func (s *Shadow) Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return s.from.Machines(ctx, pool)
}

// ReadPool completes a pool's addresses.
func (s *Shadow) ReadPool(p lb.Pool) {
	defer s.lock()()
	known := s.balancers[p.ID.LoadBalancer.Key()]
	if known == nil {
		return
	}
	for _, b := range []*lb.LoadBalancer{&known.Was, &known.Is} {
		b.Pools = slices.Clone(b.Pools)
		for i, is := range b.Pools {
			if strings.EqualFold(is.ID.Name, p.ID.Name) && len(is.Addresses) == len(p.Addresses) {
				b.Pools[i].Addresses = p.Addresses
			}
		}
	}
}

// PutPool writes a known load balancer's pool, and counts changes.
func (s *Shadow) PutPool(p lb.Pool) {
	defer s.lock()()
	known := s.balancers[p.ID.LoadBalancer.Key()]
	if known == nil {
		return
	}
	known.Is.Pools = slices.Clone(known.Is.Pools)
	for i, is := range known.Is.Pools {
		if strings.EqualFold(is.ID.Name, p.ID.Name) {
			if !slices.Equal(is.Addresses, p.Addresses) {
				s.pools++
			}
			known.Is.Pools[i] = p
		}
	}
}

// Reserved networks, for placeholders. https://www.rfc-editor.org/rfc/rfc1112#section-4
// https://www.rfc-editor.org/rfc/rfc6666
var (
	reservedIPv4 = netip.MustParseAddr("240.0.0.0")
	reservedIPv6 = netip.MustParseAddr("100::")
)

func (s *Shadow) give(family lb.Family, to string) netip.Addr {
	next := reservedIPv4
	if family == lb.IPv6 {
		next = reservedIPv6
	}
	for {
		next = next.Next()
		if s.given[next] == "" {
			s.given[next] = to
			return next
		}
	}
}
