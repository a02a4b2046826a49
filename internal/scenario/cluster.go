// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// cluster is what a Kubernetes API would hold.
type cluster struct {
	nodes    map[string]membership.Node
	lost     map[string]membership.Node
	services map[string]*service
	bindings map[string]*binding // by the pool's name
	uids     int
}

// service is a Service with the endpoints behind it.
type service struct {
	name      string
	endpoints []membership.Endpoint
}

// binding is a BackendPool: it has a pool hold the members of a Service. It outlives
// the Service, and so does the ledger, which is part of it.
type binding struct {
	ref     poolupdate.Ref
	pool    lb.PoolID
	family  lb.Family
	service string
	written []netip.Addr
	taken   bool
}

func newCluster() cluster {
	return cluster{
		nodes: map[string]membership.Node{}, lost: map[string]membership.Node{},
		services: map[string]*service{}, bindings: map[string]*binding{},
	}
}

// endpointsASlice is small, so that most Services have several slices.
const endpointsASlice = 2

// slices returns the EndpointSlices of a Service.
func (v *service) slices() []membership.Slice {
	var all []membership.Slice
	for part := range slices.Chunk(v.endpoints, endpointsASlice) {
		for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
			all = append(all, membership.Slice{Family: family, Endpoints: part})
		}
	}
	return all
}

// place has a Service's ready endpoints run on these nodes.
func (v *service) place(nodes []string) {
	v.endpoints = nil
	for _, n := range nodes {
		v.endpoints = append(v.endpoints, membership.Endpoint{Node: n, Ready: true, Serving: true})
	}
}

func (c *cluster) addNode(name string) {
	if _, ok := c.nodes[name]; ok || c.lost[name].Name != "" {
		return
	}
	n := len(c.nodes) + len(c.lost) + 1
	c.nodes[name] = membership.Node{Name: name, IPs: []netip.Addr{
		netip.AddrFrom4([4]byte{10, 0, byte(n / 250), byte(n%250 + 1)}),
		netip.MustParseAddr(fmt.Sprintf("fd00::%x", n)),
	}}
}

func (c *cluster) bind(service string, pool lb.PoolID) *binding {
	c.uids++
	b := &binding{
		ref:  poolupdate.Ref{Namespace: namespace, Name: pool.Name, UID: fmt.Sprintf("uid-%d", c.uids)},
		pool: pool, family: lb.IPv4, service: service,
	}
	if strings.HasSuffix(pool.Name, "-ipv6") {
		b.family = lb.IPv6
	}
	c.bindings[pool.Name] = b
	return b
}

const namespace = "default"

// of returns the bindings of a Service, by name.
func (c *cluster) of(service string) []*binding {
	var all []*binding
	for _, name := range slices.Sorted(maps.Keys(c.bindings)) {
		if b := c.bindings[name]; b.service == service {
			all = append(all, b)
		}
	}
	return all
}

// members is what the pool of a binding has to hold; nothing once the Service is gone.
func (c *cluster) members(b *binding) []lb.Address {
	v := c.services[b.service]
	if v == nil {
		return nil
	}
	node := func(name string) (membership.Node, bool) {
		n, ok := c.nodes[name]
		return n, ok
	}
	return membership.OfService(v.slices(), node, b.family).Addresses
}

func (c *cluster) has(ip netip.Addr) bool {
	for _, n := range c.nodes {
		if slices.Contains(n.IPs, ip) {
			return true
		}
	}
	return false
}

func (c *cluster) byRef(ref poolupdate.Ref) *binding {
	if b := c.bindings[ref.Name]; b != nil && b.ref == ref {
		return b
	}
	return nil
}

// Relevant implements poolupdate.Cluster.
func (p *process) Relevant(op poolupdate.Operation) bool {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.cluster.byRef(op.Ref)
	if b == nil || b.pool.Key() != op.Pool.Key() {
		return false
	}
	if s.cluster.services[b.service] == nil {
		return op.Service == (poolupdate.ServiceName{}) && b.taken
	}
	return op.Service == (poolupdate.ServiceName{}) || op.Service.Name == b.service
}

// Wanted implements poolupdate.Cluster.
func (p *process) Wanted(ref poolupdate.Ref) poolupdate.Wanted {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.cluster.byRef(ref)
	if b == nil || s.cluster.services[b.service] == nil {
		if b != nil && s.pools[b.pool.Key()].attempt != nil {
			s.pools[b.pool.Key()].attempt.gone = true
		}
		return poolupdate.Wanted{Ours: func(netip.Addr) bool { return false }}
	}
	ours := map[netip.Addr]bool{}
	for _, n := range s.cluster.nodes {
		for _, ip := range n.IPs {
			ours[ip] = true
		}
	}
	return poolupdate.Wanted{Addresses: s.cluster.members(b), Ours: func(ip netip.Addr) bool { return ours[ip] }}
}

// changed tells the lanes of the endpoints of these Services, as the controller would:
// an operation for each pool that is not known to be level with them.
func (s *Stage) changed(services ...string) {
	for _, name := range services {
		s.mu.Lock()
		bindings := s.cluster.of(name)
		s.mu.Unlock()
		for _, b := range bindings {
			s.bringLevel(b)
		}
	}
}

func (s *Stage) bringLevel(b *binding) {
	s.mu.Lock()
	p, known := s.process, s.pools[b.pool.Key()]
	dead := p == nil || p.dead
	gone := s.cluster.services[b.service] == nil
	members, level := s.cluster.members(b), known.level
	nothing := gone && (!b.taken || len(b.written) == 0)
	s.mu.Unlock()
	if dead || nothing || level && !gone && p.lanes.LevelAs(b.pool, membership.Fingerprint(members)) {
		return
	}
	op := poolupdate.Operation{Ref: b.ref, Pool: b.pool, ChangedAt: time.Now()}
	if !gone {
		op.Service = poolupdate.ServiceName{Namespace: namespace, Name: b.service}
	}
	s.mu.Lock()
	known.added++
	if known.givenUp { // until now nobody had to do anything
		known.trouble = later(known.trouble, time.Now())
	}
	known.failed, known.givenUp = 0, false
	s.mu.Unlock()
	p.lanes.Add(op)
}
