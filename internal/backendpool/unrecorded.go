// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"
	"sync"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// unrecorded is what was on record of BackendPools that this process has let go, until the next one
// has a record of its pool. Of a pool that is not in it nothing is known.
type unrecorded struct {
	mu sync.Mutex // held for moments
	of map[lb.PoolKey][]netip.Addr
}

func (u *unrecorded) note(pool lb.PoolKey, ips []netip.Addr) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.of == nil {
		u.of = map[lb.PoolKey][]netip.Addr{}
	}
	u.of[pool] = ips
}

func (u *unrecorded) in(pool lb.PoolKey) (ips []netip.Addr, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	ips, known = u.of[pool]
	return ips, known
}

// forget drops what a BackendPool has on record by now, and what went with its pool.
func (u *unrecorded) forget(r poolupdate.Report) {
	if !r.Settled && r.Outcome != poolwrite.Stale {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, r.Pool.Key())
}

// handOver notes what stays in a pool when a BackendPool goes that Weir makes again.
func (c *Controller) handOver(p *v1alpha1.BackendPool, e *Entry, is Entitlement) {
	if is.Taken && c.Owner.Made(p) {
		c.unrecorded.note(is.Pool.Key(), e.Recorded().Written)
	}
}

// OursIn tells which addresses are ours that stand in a pool when it is first taken. In a pool that Weir made it is all of
// them, as nobody else writes it, unless this process knows what it has put there, or Weir left the pool to others. Anywhere
// else, and besides that, the nodes of this cluster are.
func (c *Controller) OursIn(p *v1alpha1.BackendPool) func(netip.Addr) bool {
	pool, err := c.Cluster.Target(p)
	if err != nil || !c.Owner.Made(p) {
		return c.Cluster.OfThisCluster
	}
	ours, known := c.unrecorded.in(pool.Key())
	known = known || c.Owner.LeftToOthers(pool.Key())
	return func(ip netip.Addr) bool { return !known || slices.Contains(ours, ip) || c.Cluster.OfThisCluster(ip) }
}
