// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"hash/fnv"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// SyncState is what Azure is known to hold for a Service.
type SyncState struct {
	// request is the request in sync, to be checked again at resyncAt (zero means never); nil if unknown.
	request *loadbalancer.Request
	// pools are those that the Service uses on its load balancer.
	pools          []service.Pool
	resyncAt       time.Time
	addresses      []netip.Addr
	selectorResult string
	nodes          []netip.Addr
	unused         bool
	// isPublished is set by a reconcile that finds Azure in sync.
	isPublished bool
	conflicts   []conflict.Conflict
}

// blockedResync is the resync period of a load balancer with a blocked pool conversion; there is no event when
// the blocker disappears.
const blockedResync = 5 * time.Minute

func (s *SyncState) recordInSync(r loadbalancer.Result, by Pending, now time.Time, resyncAfter time.Duration) {
	req := r.Request
	req.RemoveFrom = nil
	s.request, s.selectorResult, s.nodes, s.unused = &req, by.selectorResult, by.nodes, len(r.Unused) > 0
	s.pools = r.Pools
	if r.Desired.Link != nil && (resyncAfter <= 0 || resyncAfter > linkResync) {
		resyncAfter = linkResync
	}
	if slices.ContainsFunc(r.Retained, func(k plan.RetainedPart) bool { return k.IsConversion }) && (resyncAfter <= 0 || resyncAfter > blockedResync) {
		resyncAfter = blockedResync
	}
	if s.resyncAt = nextResync(r.On.Name, now, resyncAfter); s.resyncAt.IsZero() {
		s.resyncAt = firstConflictRetry(r.Conflicts)
	}
	if by.lostPool != nil && s.hasPool(*by.lostPool) {
		s.markStale()
	}
}

func (s *SyncState) setStatusAddresses(addresses []netip.Addr) {
	s.addresses = slices.DeleteFunc(slices.Clone(addresses), func(ip netip.Addr) bool { return !ip.IsValid() })
}

// markStale forces a check at the next reconcile.
func (s *SyncState) markStale() { s.request = nil }

// isInSync reports whether Azure is in sync with what is wanted and no resync is due.
func (s *SyncState) isInSync(d Desired, retryToken string, now time.Time) bool {
	return s.request != nil && d.Spec != nil && s.request.RetryToken == retryToken && s.selectorResult == d.SelectorResult && !d.NodesChanged &&
		reflect.DeepEqual(s.request.Desired, d.Spec) && (s.resyncAt.IsZero() || now.Before(s.resyncAt))
}

func (s *SyncState) isResync(by Pending, r loadbalancer.Request) bool {
	return s.request != nil && r.Desired != nil && s.request.RetryToken == r.RetryToken && s.request.On == r.On && reflect.DeepEqual(s.request.Desired, r.Desired) &&
		s.selectorResult == by.selectorResult && slices.Equal(s.nodes, by.nodes)
}

func (s *SyncState) hasPool(p LostPool) bool {
	return s.request != nil && strings.EqualFold(s.request.On.Name, p.LoadBalancer) &&
		(p.Pool == "" || slices.ContainsFunc(s.pools, func(pool service.Pool) bool { return strings.EqualFold(pool.Name, p.Pool) }))
}

// nextResync returns the next resync of a load balancer: the same time for all its Services, so that they share a
// read, and spread over load balancers.
func nextResync(balancer string, now time.Time, period time.Duration) time.Time {
	if period <= 0 {
		return time.Time{}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.ToLower(balancer)))
	offset := time.Duration(h.Sum64() % uint64(period)) //nolint:gosec // a period is positive
	at := now.Truncate(period).Add(offset)
	for !at.After(now) {
		at = at.Add(period)
	}
	return at
}

func firstConflictRetry(conflicts []conflict.Conflict) (first time.Time) {
	for _, c := range conflicts {
		if first.IsZero() || !c.Until.IsZero() && c.Until.Before(first) {
			first = c.Until
		}
	}
	return first
}

// haveNodesChanged reports whether a Service's security rules name outdated nodes; false while the nodes are
// unknown. Few Services name nodes, so the check is skipped for the others.
func (r *Reconciler) haveNodesChanged(l SyncState, w *service.Spec) bool {
	if l.request == nil || !r.namesNodes(w) {
		return false
	}
	_, known := r.cfg.Cluster.NodesOf(l.request.On, w.HasDedicatedPools())
	return known && !slices.Equal(l.nodes, r.nodesAt(w, l.request.On))
}

// nodesAt returns the nodes that a Service's security rules may name; none if the rules name its own addresses. What
// exists in Azure decides whether a Local Service has the pool of all nodes or its own.
func (r *Reconciler) nodesAt(w *service.Spec, on lb.LoadBalancerID) []netip.Addr {
	if !r.namesNodes(w) {
		return nil
	}
	nodes, _ := r.cfg.Cluster.NodesOf(on, w.HasDedicatedPools())
	if len(w.OwnPools) > 0 {
		others, _ := r.cfg.Cluster.NodesOf(on, !w.HasDedicatedPools())
		nodes = slices.Concat(nodes, others)
	}
	return nodes
}

func (r *Reconciler) namesNodes(w *service.Spec) bool {
	return r.cfg.Settings.HasSecurityGroup && w != nil && len(w.NodePorts()) > 0
}
