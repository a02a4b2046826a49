// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/updater"
)

// recordShown stores the members that Azure showed up, not Down, if an attempt ended in sync. Nothing is stored while
// a lost write may land.
func (e *Entry) recordShown(r updater.Report) {
	if !r.InSync || r.HasPendingWrite {
		return
	}
	up := make([]netip.Addr, 0, len(r.Written))
	for _, ip := range r.Written {
		if !slices.Contains(r.Down, ip) {
			up = append(up, ip)
		}
	}
	slices.SortFunc(up, netip.Addr.Compare)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shown = up
}

// limitShown removes the members that an attempt may remove or set Down.
func (e *Entry) limitShown(set membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.shown) == 0 {
		return
	}
	up := make(map[netip.Addr]struct{}, len(set.Addresses))
	for _, a := range set.Addresses {
		if a.AdminState != lb.Down {
			up[a.IP] = struct{}{}
		}
	}
	e.shown = slices.DeleteFunc(e.shown, func(ip netip.Addr) bool {
		_, isUp := up[ip]
		return !isUp
	})
}

// IsShown reports whether the last read of the pool showed an address as a member that is not Down, and no write since
// then may have changed that. It needs Config.MembersShown.
func (c *Controller) IsShown(p *v1alpha1.BackendPool, ip netip.Addr) bool {
	e := c.statuses.GetEntry(RefOf(p))
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	_, found := slices.BinarySearchFunc(e.shown, ip, netip.Addr.Compare)
	return found
}

// HasStartTimedOut reports whether a node is no member because no endpoint there was ready for membership.StartTimeout.
func (c *Controller) HasStartTimedOut(p *v1alpha1.BackendPool, ip netip.Addr, now time.Time) bool {
	return c.Retention.HasStartTimedOut(RefOf(p), ip, now)
}

// IsContested reports whether another controller keeps undoing Weir's writes to the pool.
func (c *Controller) IsContested(p *v1alpha1.BackendPool) bool {
	e := c.statuses.GetEntry(RefOf(p))
	return e != nil && hasConflict(e)
}
