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
	// request is what it holds, to be compared again at lookAt; nil if that is not known, and the
	// zero time is never.
	request *balancer.Request
	lookAt  time.Time
	// addresses are those of the status.
	addresses []netip.Addr
	// selection is what the selectors of the load balancers said of it, and nodes are those that
	// its security rules name.
	selection string
	nodes     []netip.Addr
	// unused is true if public IPs that were made for it are not in use.
	unused bool
	// contests are the fights that people know of.
	contests []contest.Contest
}

// looksAtKept is how often a load balancer is compared of which a pool cannot go from one kind of members
// to the other: nobody tells that what keeps it is gone.
const looksAtKept = 5 * time.Minute

// reached takes in a request that Azure holds now.
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

// shows takes in the addresses of the status.
func (l *Level) shows(addresses []netip.Addr) {
	l.addresses = slices.DeleteFunc(slices.Clone(addresses), func(ip netip.Addr) bool { return !ip.IsValid() })
}

// drop has the load balancer compared at the next look.
func (l *Level) drop() { l.request = nil }

// holds reports whether Azure is known to hold what is wanted, where it belongs, and it is not time
// to look again.
func (l *Level) holds(d Desired, again string, now time.Time) bool {
	return l.request != nil && d.Spec != nil && l.request.Again == again && l.selection == d.Selection && !d.NodesChanged &&
		reflect.DeepEqual(l.request.Desired, d.Spec) && (l.lookAt.IsZero() || now.Before(l.lookAt))
}

// looked reports whether what was asked for was known to be held: Azure was only to be compared with it.
func (l *Level) looked(by Pending, r balancer.Request) bool {
	return l.request != nil && r.Desired != nil && l.request.Again == r.Again && l.request.On == r.On && reflect.DeepEqual(l.request.Desired, r.Desired) &&
		l.selection == by.selection && slices.Equal(l.nodes, by.nodes)
}

// needs reports whether a BackendPool belongs to what the Service has now.
func (l *Level) needs(p LostPool) bool {
	return l.request != nil && strings.EqualFold(l.request.On.Name, p.LoadBalancer) &&
		(p.Pool == "" || slices.ContainsFunc(l.request.Desired.Pools, func(pool service.Pool) bool { return pool.Name == p.Pool }))
}

// lookAt is when the Services of a load balancer are compared next: all at the same time,
// so that one read serves all of them, and each load balancer at a time of its own.
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

// truce is when the first of the fights is taken up again; zero if there is none.
func truce(contests []contest.Contest) (first time.Time) {
	for _, c := range contests {
		if first.IsZero() || !c.Until.IsZero() && c.Until.Before(first) {
			first = c.Until
		}
	}
	return first
}

// nodesChanged reports whether the security rules of a Service name other nodes than are there
// now. Nodes that are not known yet make no difference. Of thousands of Services hardly any names
// nodes, and to look takes all of them.
func (r *Reconciler) nodesChanged(l Level, w *service.Spec) bool {
	if l.request == nil || !r.namesNodes(w) {
		return false
	}
	nodes, known := r.cfg.Cluster.NodesOf(l.request.On, w.OwnPools())
	return known && !slices.Equal(l.nodes, nodes)
}

// nodesAt are the nodes that the security rules of a Service name; none if they name its own
// addresses.
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
