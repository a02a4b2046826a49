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
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// cluster is the state of the Kubernetes API.
type cluster struct {
	view
	lostNodes map[string]membership.Node
	bindings  map[string]*backendPool // by pool name
	uids      int
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

type service struct {
	name      string
	endpoints []membership.Endpoint
}

// backendPool is a BackendPool that binds a pool to the members of a Service, or to nodes. It and its
// ledger entry outlive the Service. Its events are never late.
type backendPool struct {
	ref    schedule.Ref
	pool   lb.PoolID
	family lb.Family
	// service provides the members; empty if nodes does.
	service string
	nodes   []string
	// Requested by the user.
	isPaused, isDeleting bool
	entry                statusEntry
	// version counts the writes of the entry.
	version int
	// retryAfter is the Retry-After in the status.
	retryAfter time.Time
	// notification is the last notification in the status.
	notification notificationStatus
}

// statusEntry is the ledger entry of a pool.
type statusEntry struct {
	written, down []netip.Addr
	taken         bool
}

func newCluster() cluster {
	return cluster{
		view:      view{map[string]membership.Node{}, map[string]*service{}},
		lostNodes: map[string]membership.Node{}, bindings: map[string]*backendPool{},
	}
}

// endpointsPerSlice is small, so that most Services have several slices.
const endpointsPerSlice = 2

func (s *service) endpointSlices() []membership.Slice {
	var items []membership.Slice
	for part := range slices.Chunk(s.endpoints, endpointsPerSlice) {
		for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
			items = append(items, membership.Slice{Family: family, Endpoints: part})
		}
	}
	return items
}

// newService returns a Service with ready endpoints on the given nodes.
func newService(name string, nodes []string) *service {
	v := &service{name: name}
	for _, n := range nodes {
		v.endpoints = append(v.endpoints, membership.Endpoint{Node: n, Ready: true, Serving: true})
	}
	return v
}

func (s *service) hasEndpointOn(node string) bool {
	return slices.ContainsFunc(s.endpoints, func(e membership.Endpoint) bool { return e.Node == node })
}

func (c *cluster) addNode(name string) {
	if _, ok := c.nodes[name]; ok || c.lostNodes[name].Name != "" {
		return
	}
	c.nodes[name] = membership.Node{Name: name, IPs: c.newAddresses()}
}

func (c *cluster) bindPool(service string, nodes []string, pool lb.PoolID) *backendPool {
	c.uids++
	b := &backendPool{
		ref:  schedule.Ref{Namespace: namespace, Name: pool.Name, UID: fmt.Sprintf("uid-%d", c.uids)},
		pool: pool, family: lb.IPv4, service: service, nodes: nodes,
	}
	if strings.HasSuffix(pool.Name, "-ipv6") {
		b.family = lb.IPv6
	}
	c.bindings[pool.Name] = b
	return b
}

const namespace = "default"

// bindingsOf returns the bindings of a Service, sorted by name.
func (c *cluster) bindingsOf(service string) []*backendPool {
	var pools []*backendPool
	for _, name := range slices.Sorted(maps.Keys(c.bindings)) {
		if b := c.bindings[name]; b.service == service {
			pools = append(pools, b)
		}
	}
	return pools
}

// desiredMembers returns the desired members of a binding; none if its Service or BackendPool is missing
// or being deleted.
func (v view) desiredMembers(b *backendPool) []lb.Address {
	if b.isDeleting || v.isServiceMissing(b) {
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
	return membership.OfService(v.services[b.service].endpointSlices(), node, b.family).KeepMinAvailable(minAvailable).Addresses
}

// minAvailable is the percentage of a pool that announced evictions leave up.
const minAvailable = lb.DefaultMinAvailablePercent

// isServiceMissing reports whether the binding's Service does not exist.
func (v view) isServiceMissing(b *backendPool) bool {
	return b.service != "" && v.services[b.service] == nil
}

// hasAddress reports whether a node, including a lost one, has the address.
func (c *cluster) hasAddress(ip netip.Addr) bool {
	return c.hasNodeAddress(ip) || view{nodes: c.lostNodes}.hasNodeAddress(ip)
}

func (v view) hasNodeAddress(ip netip.Addr) bool {
	for _, n := range v.nodes {
		if slices.Contains(n.IPs, ip) {
			return true
		}
	}
	return false
}

func (c *cluster) byRef(ref schedule.Ref) *backendPool {
	if b := c.bindings[ref.Name]; b != nil && b.ref == ref {
		return b
	}
	return nil
}

func (p *process) IsNeeded(op schedule.Operation) bool {
	s := p.stage
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.pools[op.Pool.Key()]
	if k == nil {
		return false
	}
	if p.isOldLeader {
		return p.isOperationNeeded(op)
	}
	relevant := p.isOperationNeeded(op)
	if k.isAttempted() && (!k.mayRequery() || !relevant) { // the updater queries before and after an attempt
		k.attempt.isOver, k.endedAt = true, time.Now()
		if p.killAt.countHit(call{kind: resultKind, pool: op.Pool}) {
			p.killAtPoint("when " + op.Pool.Name + " was settled")
		}
	}
	switch {
	case !relevant:
		k.queuedAt, k.deferredAt = time.Time{}, time.Time{}
	case (s.isAttemptOver(k) || k.isBatchRead()) && !p.killed:
		s.recordQuery(op, k)
	}
	return relevant
}

// isAttemptOver reports whether a pool has no attempt, or one that ended earlier and has no target. The
// caller holds s.mu.
func (s *Stage) isAttemptOver(k *pool) bool {
	return k.attempt == nil ||
		k.attempt.isOver && k.endedAt.Before(time.Now()) && !slices.ContainsFunc(s.poolsOf(k.id.LoadBalancer), (*pool).isAttempted)
}

// isOperationNeeded reports whether an operation still has a target. The caller holds s.mu.
func (p *process) isOperationNeeded(op schedule.Operation) bool {
	b := p.stage.cluster.byRef(op.Ref)
	if b == nil || b.pool.Key() != op.Pool.Key() || b.isPaused {
		return false
	}
	nobodys := op.Service == (schedule.ServiceName{})
	if b.isDeleting || p.cache.isServiceMissing(b) {
		return nobodys && p.statusEntries[b.ref].taken
	}
	return nobodys || op.Service.Name == b.service
}

func (p *process) DesiredPool(ref schedule.Ref) (diff.Desired, error) {
	s, none := p.stage, diff.Desired{}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.cluster.byRef(ref)
	if p.killed || b == nil {
		return none, errProcessKilled
	}
	if b.isPaused {
		return none, errLeaseHeld
	}
	gone := b.isDeleting || p.cache.isServiceMissing(b)
	if a := s.pools[b.pool.Key()].attempt; a != nil && !p.isOldLeader {
		a.noDesiredState = gone // queried again after a write that lost to another writer
	}
	want := diff.Desired{IsOwnAddress: func(netip.Addr) bool { return false }, Record: p.recordedEntry(ref)}
	if gone {
		return want, nil
	}
	managed := map[netip.Addr]bool{}
	for _, n := range p.cache.nodes {
		for _, ip := range n.IPs {
			managed[ip] = true
		}
	}
	want.Addresses, want.IsOwnAddress = p.cache.desiredMembers(b), func(ip netip.Addr) bool { return managed[ip] }
	return want, nil
}
