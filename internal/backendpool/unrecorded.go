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

// unrecorded retains the records of released BackendPools until the next BackendPool records its pool. A
// missing pool is unknown, not empty.
type unrecorded struct {
	mu sync.Mutex // held briefly
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

// forget drops a pool that has a new record, or no longer exists.
func (u *unrecorded) forget(r poolupdate.Report) {
	if !r.Settled && r.Outcome != poolwrite.Stale {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.of, r.Pool.Key())
}

func (c *Controller) handOver(p *v1alpha1.BackendPool, e *Entry, is Entitlement) {
	if is.Taken && c.Owner.Made(p) {
		c.unrecorded.note(is.Pool.Key(), e.Recorded().Written)
	}
}

// OursIn returns which addresses are Weir's when a pool is first taken. In a pool that Weir created it is all
// of them, unless this process has a record, or Weir left the pool to others. In any case it includes the
// nodes of this cluster.
func (c *Controller) OursIn(p *v1alpha1.BackendPool) func(netip.Addr) bool {
	pool, err := c.Cluster.Target(p)
	if err != nil || !c.Owner.Made(p) {
		return c.Cluster.OfThisCluster
	}
	ours, known := c.unrecorded.in(pool.Key())
	known = known || c.Owner.LeftToOthers(pool.Key())
	return func(ip netip.Addr) bool { return !known || slices.Contains(ours, ip) || c.Cluster.OfThisCluster(ip) }
}
