// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"
	"sync"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// retainedRecords retains the records of released BackendPools until the next BackendPool records its pool. A
// missing pool is unknown, not empty.
type retainedRecords struct {
	mu     sync.Mutex // held briefly
	byPool map[lb.PoolKey][]netip.Addr
}

func (rr *retainedRecords) setRecord(pool lb.PoolKey, ips []netip.Addr) {
	rr.mu.Lock()
	defer rr.mu.Unlock()
	if rr.byPool == nil {
		rr.byPool = map[lb.PoolKey][]netip.Addr{}
	}
	rr.byPool[pool] = ips
}

func (rr *retainedRecords) getRecord(pool lb.PoolKey) (ips []netip.Addr, known bool) {
	rr.mu.Lock()
	defer rr.mu.Unlock()
	ips, known = rr.byPool[pool]
	return ips, known
}

// forgetRecord drops a pool that has a new record, or no longer exists.
func (rr *retainedRecords) forgetRecord(r updater.Report) {
	if !r.InSync && r.Outcome != diff.Stale {
		return
	}
	rr.mu.Lock()
	defer rr.mu.Unlock()
	delete(rr.byPool, r.Pool.Key())
}

func (c *Controller) retainRecord(p *v1alpha1.BackendPool, e *Entry, binding Binding) {
	if binding.HasRecord && c.Owner.IsCreatedByWeir(p) {
		c.retained.setRecord(binding.Pool.Key(), e.MemberRecord().Written)
	}
}

// ManagedAddresses returns which addresses are Weir's when a pool is first taken. In a pool that Weir created it is all
// of them, unless this process has a record, or Weir left the pool to others. In any case it includes the
// nodes of this cluster.
func (c *Controller) ManagedAddresses(p *v1alpha1.BackendPool) func(netip.Addr) bool {
	pool, err := c.Cluster.Target(p)
	if err != nil || !c.Owner.IsCreatedByWeir(p) {
		return c.Cluster.IsNodeAddress
	}
	retained, known := c.retained.getRecord(pool.Key())
	known = known || c.Owner.IsLeftForeign(pool.Key())
	return func(ip netip.Addr) bool {
		return !known || slices.Contains(retained, ip) || c.Cluster.IsNodeAddress(ip)
	}
}
