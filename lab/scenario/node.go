// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// updateNode updates the process's copy of a node. It reports whether draining started or ended, and
// whether nothing else changed. The caller holds s.mu.
func (p *process) updateNode(name string) (drains, alone bool) {
	before, known := p.handledNodes[name]
	n, ok := p.cache.nodes[name]
	if !ok {
		delete(p.handledNodes, name)
		return false, false
	}
	p.handledNodes[name] = n
	drains = before.DrainReason != n.DrainReason
	return drains, drains && known && before.Excluded == n.Excluded && slices.Equal(before.IPs, n.IPs)
}

// queueAdminStates queues an admin-state change for each pool of a node.
func (p *process) queueAdminStates(node string) {
	s := p.stage
	var ops []schedule.Operation
	s.mu.Lock()
	for _, k := range s.sortedPools() {
		b := s.cluster.bindings[k.id.Name]
		if b == nil || b.isPaused || b.isDeleting || p.killed {
			continue
		}
		members := p.cache.desiredMembers(b)
		if !slices.ContainsFunc(members, func(a lb.Address) bool { return slices.Contains(p.cache.nodes[node].IPs, a.IP) }) {
			continue
		}
		if k.inSync && p.updater.IsInSync(b.pool, membership.Fingerprint(members)) {
			continue
		}
		op := schedule.Operation{Ref: b.ref, Pool: b.pool, Admin: true, ChangedAt: time.Now(), NotBefore: p.retryAfter[b.ref], LastNotification: b.notification.recalledState()}
		op.Impact = adminStateImpact(members, p.statusEntries[b.ref].down)
		if b.service != "" {
			op.Service = schedule.ServiceName{Namespace: namespace, Name: b.service}
		}
		k.adminQueued = true
		k.queueChange()
		ops = append(ops, op)
	}
	s.mu.Unlock()
	p.updater.Add(ops...)
}

// adminStateImpact computes the impact of an admin-state change, given the addresses recorded as Down.
func adminStateImpact(members []lb.Address, down []netip.Addr) schedule.Impact {
	var stake schedule.Impact
	for _, a := range members {
		switch leaves, ok := a.AdminState == lb.Down, slices.Contains(down, a.IP); {
		case leaves && !ok:
			stake.Stopping++
		case ok && !leaves:
			stake.Starting++
		case !leaves:
			stake.Serving++
		}
	}
	return stake
}

// keepAdminRetry records a failed attempt that was caused by an admin-state change only; what it took
// along is unchanged. The caller holds the stage's mu.
func (p *pool) keepAdminRetry(r updater.Report) {
	p.attempt, p.inSync, p.parkedUntil = nil, false, r.NextEligibleAt
	if p.adminQueued = p.adminQueued || !r.AdminRetryAt.IsZero(); p.adminQueued || r.WillRetry {
		p.queueChange()
	}
	p.faultEnd = latest(p.faultEnd, latest(latest(r.RetryAt, r.AdminRetryAt), time.Now()))
	if r.Fault != nil {
		p.faultEnd = latest(p.faultEnd, r.Fault.RetryAt)
	}
}
