// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/adminstate"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
)

// cluster is the state of the Kubernetes API.
type cluster struct {
	view
	lost     map[string]membership.Node
	bindings map[string]*binding // by pool name
	uids     int
	// addresses counts the assigned node addresses.
	addresses int
}

// view determines membership: the API's state, or a process's cache of it. Values are replaced,
// never modified.
type view struct {
	nodes    map[string]membership.Node
	services map[string]*service
}

func (v view) clone() view { return view{maps.Clone(v.nodes), maps.Clone(v.services)} }

// service is a Service and its endpoints.
type service struct {
	name      string
	endpoints []membership.Endpoint
}

// binding is a BackendPool that binds a pool to the members of a Service, or to nodes. It and its
// ledger entry outlive the Service. Its events are never late.
type binding struct {
	ref    poolschedule.Ref
	pool   lb.PoolID
	family lb.Family
	// service provides the members; empty if nodes does.
	service string
	nodes   []string
	// paused and deleting are requested by the user.
	paused, deleting bool
	entry            entry
	// version counts the writes of the entry.
	version int
	// notBefore is the Retry-After in the status.
	notBefore time.Time
	// told is the last notification in the status.
	told toldStatus
}

// entry is the ledger entry of a pool.
type entry struct {
	written, down []netip.Addr
	taken         bool
}

func newCluster() cluster {
	return cluster{
		view: view{map[string]membership.Node{}, map[string]*service{}},
		lost: map[string]membership.Node{}, bindings: map[string]*binding{},
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

// placed returns a Service with ready endpoints on the given nodes.
func placed(name string, nodes []string) *service {
	v := &service{name: name}
	for _, n := range nodes {
		v.endpoints = append(v.endpoints, membership.Endpoint{Node: n, Ready: true, Serving: true})
	}
	return v
}

// runsOn reports whether the node has an endpoint of the Service.
func (v *service) runsOn(node string) bool {
	return slices.ContainsFunc(v.endpoints, func(e membership.Endpoint) bool { return e.Node == node })
}

func (c *cluster) addNode(name string) {
	if _, ok := c.nodes[name]; ok || c.lost[name].Name != "" {
		return
	}
	c.nodes[name] = membership.Node{Name: name, IPs: c.newAddresses()}
}

func (c *cluster) bind(service string, nodes []string, pool lb.PoolID) *binding {
	c.uids++
	b := &binding{
		ref:  poolschedule.Ref{Namespace: namespace, Name: pool.Name, UID: fmt.Sprintf("uid-%d", c.uids)},
		pool: pool, family: lb.IPv4, service: service, nodes: nodes,
	}
	if strings.HasSuffix(pool.Name, "-ipv6") {
		b.family = lb.IPv6
	}
	c.bindings[pool.Name] = b
	return b
}

const namespace = "default"

// of returns the bindings of a Service, sorted by name.
func (c *cluster) of(service string) []*binding {
	var all []*binding
	for _, name := range slices.Sorted(maps.Keys(c.bindings)) {
		if b := c.bindings[name]; b.service == service {
			all = append(all, b)
		}
	}
	return all
}

// members returns the desired members of a binding; none if its Service or BackendPool is gone or
// being deleted.
func (v view) members(b *binding) []lb.Address {
	if b.deleting || v.gone(b) {
		return nil
	}
	if b.service == "" {
		selected := func(yield func(membership.Node) bool) {
			for _, name := range b.nodes {
				if n, ok := v.nodes[name]; ok && !yield(n) {
					return
				}
			}
		}
		return membership.OfNodes(selected, b.family).KeepMinAvailable(minAvailable).Addresses
	}
	node := func(name string) (membership.Node, bool) {
		n, ok := v.nodes[name]
		return n, ok
	}
	return membership.OfService(v.services[b.service].slices(), node, b.family).KeepMinAvailable(minAvailable).Addresses
}

// minAvailable is the percentage of a pool that announced evictions leave up.
const minAvailable = adminstate.DefaultMinAvailablePercent

// gone reports whether the binding's Service does not exist.
func (v view) gone(b *binding) bool { return b.service != "" && v.services[b.service] == nil }

// has reports whether a node, including a lost one, has the address.
func (c *cluster) has(ip netip.Addr) bool { return c.view.has(ip) || view{nodes: c.lost}.has(ip) }

func (v view) has(ip netip.Addr) bool {
	for _, n := range v.nodes {
		if slices.Contains(n.IPs, ip) {
			return true
		}
	}
	return false
}

func (c *cluster) byRef(ref poolschedule.Ref) *binding {
	if b := c.bindings[ref.Name]; b != nil && b.ref == ref {
		return b
	}
	return nil
}

func (p *process) IsNeeded(op poolschedule.Operation) bool {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.pools[op.Pool.Key()]
	if k == nil {
		return false
	}
	if p.former {
		return p.cares(op)
	}
	relevant := p.cares(op)
	if k.underWay() && (!k.between() || !relevant) { // the updater asks before and after an attempt
		k.attempt.over, k.ended = true, time.Now()
		if p.kill.hit(call{kind: settling, pool: op.Pool}) {
			p.strike("when " + op.Pool.Name + " was settled")
		}
	}
	switch {
	case !relevant:
		k.waits, k.putOff = time.Time{}, time.Time{}
	case (s.idle(k) || k.looked()) && !p.dead:
		s.asks(op, k)
	}
	return relevant
}

// idle reports whether a pool has no attempt, or one that ended earlier and whose target is gone.
// The caller holds s.mu.
func (s *Stage) idle(k *pool) bool {
	return k.attempt == nil ||
		k.attempt.over && k.ended.Before(time.Now()) && !slices.ContainsFunc(s.lane(k.id.LoadBalancer), (*pool).underWay)
}

// cares reports whether an operation still has a target. The caller holds s.mu.
func (p *process) cares(op poolschedule.Operation) bool {
	b := p.stage.cluster.byRef(op.Ref)
	if b == nil || b.pool.Key() != op.Pool.Key() || b.paused {
		return false
	}
	nobodys := op.Service == (poolschedule.ServiceName{})
	if b.deleting || p.seen.gone(b) {
		return nobodys && p.ledger[b.ref].taken
	}
	return nobodys || op.Service.Name == b.service
}

func (p *process) DesiredPool(ref poolschedule.Ref) (poolwrite.Desired, error) {
	s, none := p.stage, poolwrite.Desired{}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.cluster.byRef(ref)
	if p.dead || b == nil {
		return none, errDead
	}
	if b.paused {
		return none, errHeld
	}
	gone := b.deleting || p.seen.gone(b)
	if a := s.pools[b.pool.Key()].attempt; a != nil && !p.former {
		a.gone = gone // queried again after a write that lost to another writer
	}
	want := poolwrite.Desired{IsManaged: func(netip.Addr) bool { return false }, Record: p.recorded(ref)}
	if gone {
		return want, nil
	}
	ours := map[netip.Addr]bool{}
	for _, n := range p.seen.nodes {
		for _, ip := range n.IPs {
			ours[ip] = true
		}
	}
	want.Addresses, want.IsManaged = p.seen.members(b), func(ip netip.Addr) bool { return ours[ip] }
	return want, nil
}
