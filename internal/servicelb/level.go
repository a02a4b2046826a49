// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"hash/fnv"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// Level is what Azure is known to hold for a Service.
type Level struct {
	// request is the request in sync, to be checked again at lookAt (zero means never); nil if unknown.
	request   *balancer.Request
	lookAt    time.Time
	addresses []netip.Addr
	selection string
	nodes     []netip.Addr
	unused    bool
	contests  []contest.Contest
}

// looksAtKept is the resync period of a load balancer with a blocked pool conversion; there is no event when
// the blocker disappears.
const looksAtKept = 5 * time.Minute

func (l *Level) reached(r balancer.Result, by Pending, now time.Time, lookAgainAfter time.Duration) {
	req := r.Request
	req.Leave = nil
	l.request, l.selection, l.nodes, l.unused = &req, by.selection, by.nodes, len(r.Unused) > 0
	if r.Desired.Link != nil && (lookAgainAfter <= 0 || lookAgainAfter > looksAtLinks) {
		lookAgainAfter = looksAtLinks
	}
	if slices.ContainsFunc(r.Kept, func(k plan.Kept) bool { return k.Converting }) && (lookAgainAfter <= 0 || lookAgainAfter > looksAtKept) {
		lookAgainAfter = looksAtKept
	}
	if l.lookAt = lookAt(r.On.Name, now, lookAgainAfter); l.lookAt.IsZero() {
		l.lookAt = truce(r.Contests)
	}
}

func (l *Level) shows(addresses []netip.Addr) {
	l.addresses = slices.DeleteFunc(slices.Clone(addresses), func(ip netip.Addr) bool { return !ip.IsValid() })
}

// drop forces a check at the next reconcile.
func (l *Level) drop() { l.request = nil }

// holds reports whether Azure is in sync with what is wanted and no resync is due.
func (l *Level) holds(d Desired, again string, now time.Time) bool {
	return l.request != nil && d.Spec != nil && l.request.Again == again && l.selection == d.Selection && !d.NodesChanged &&
		reflect.DeepEqual(l.request.Desired, d.Spec) && (l.lookAt.IsZero() || now.Before(l.lookAt))
}

func (l *Level) looked(by Pending, r balancer.Request) bool {
	return l.request != nil && r.Desired != nil && l.request.Again == r.Again && l.request.On == r.On && reflect.DeepEqual(l.request.Desired, r.Desired) &&
		l.selection == by.selection && slices.Equal(l.nodes, by.nodes)
}

func (l *Level) needs(p LostPool) bool {
	return l.request != nil && strings.EqualFold(l.request.On.Name, p.LoadBalancer) &&
		(p.Pool == "" || slices.ContainsFunc(l.request.Desired.Pools, func(pool service.Pool) bool { return pool.Name == p.Pool }))
}

// lookAt returns the next resync of a load balancer: the same time for all its Services, so that they share a
// read, and spread over load balancers.
func lookAt(balancer string, now time.Time, period time.Duration) time.Time {
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

func truce(contests []contest.Contest) (first time.Time) {
	for _, c := range contests {
		if first.IsZero() || !c.Until.IsZero() && c.Until.Before(first) {
			first = c.Until
		}
	}
	return first
}

// nodesChanged reports whether a Service's security rules name outdated nodes; false while the nodes are
// unknown. Few Services name nodes, so the check is skipped for the others.
func (r *Reconciler) nodesChanged(l Level, w *service.Spec) bool {
	if l.request == nil || !r.namesNodes(w) {
		return false
	}
	nodes, known := r.cfg.Cluster.NodesOf(l.request.On, w.OwnPools())
	return known && !slices.Equal(l.nodes, nodes)
}

// nodesAt returns the nodes in a Service's security rules; none if the rules name its own addresses.
func (r *Reconciler) nodesAt(w *service.Spec, on lb.LoadBalancerID) []netip.Addr {
	if !r.namesNodes(w) {
		return nil
	}
	nodes, _ := r.cfg.Cluster.NodesOf(on, w.OwnPools())
	return nodes
}

func (r *Reconciler) namesNodes(w *service.Spec) bool {
	return r.cfg.Settings.Guarded && w != nil && len(w.NodePorts()) > 0
}
