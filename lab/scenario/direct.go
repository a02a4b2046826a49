// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
)

// act updates the process's copy of a node. It reports whether draining started or ended, and
// whether nothing else changed. The caller holds s.mu.
func (p *process) act(name string) (drains, alone bool) {
	before, known := p.acted[name]
	n, there := p.seen.nodes[name]
	if !there {
		delete(p.acted, name)
		return false, false
	}
	p.acted[name] = n
	drains = before.DrainReason != n.DrainReason
	return drains, drains && known && before.Excluded == n.Excluded && slices.Equal(before.IPs, n.IPs)
}

// direct queues an admin-state change for each pool of a node.
func (p *process) direct(node string) {
	s := p.stage
	var ops []poolschedule.Operation
	s.mu.Lock()
	for _, k := range s.sorted() {
		b := s.cluster.bindings[k.id.Name]
		if b == nil || b.paused || b.deleting || p.dead {
			continue
		}
		members := p.seen.members(b)
		if !slices.ContainsFunc(members, func(a lb.Address) bool { return slices.Contains(p.seen.nodes[node].IPs, a.IP) }) {
			continue
		}
		if k.level && p.lanes.IsInSync(b.pool, membership.Fingerprint(members)) {
			continue
		}
		op := poolschedule.Operation{Ref: b.ref, Pool: b.pool, Admin: true, ChangedAt: time.Now(), NotBefore: p.notBefore[b.ref], LastNotification: b.told.recalled()}
		op.Impact = stakeOf(members, p.ledger[b.ref].down)
		if b.service != "" {
			op.Service = poolschedule.ServiceName{Namespace: namespace, Name: b.service}
		}
		k.admin = true
		k.queues()
		ops = append(ops, op)
	}
	s.mu.Unlock()
	p.lanes.Add(ops...)
}

// stakeOf computes the impact of an admin-state change, given the addresses recorded as Down.
func stakeOf(members []lb.Address, down []netip.Addr) poolschedule.Impact {
	var stake poolschedule.Impact
	for _, a := range members {
		switch leaves, is := a.AdminState == lb.Down, slices.Contains(down, a.IP); {
		case leaves && !is:
			stake.Stopping++
		case is && !leaves:
			stake.Starting++
		case !leaves:
			stake.Serving++
		}
	}
	return stake
}

// keepsAt records a failed attempt that was caused by an admin-state change only; what it took
// along is unchanged. The caller holds the stage's mu.
func (k *pool) keepsAt(r poolupdate.Report) {
	k.attempt, k.level, k.parkedUntil = nil, false, r.NextEligibleAt
	if k.admin = k.admin || !r.AdminRetryAt.IsZero(); k.admin || r.WillRetry {
		k.queues()
	}
	k.trouble = later(k.trouble, later(later(r.RetryAt, r.AdminRetryAt), time.Now()))
	if r.Fault != nil {
		k.trouble = later(k.trouble, r.Fault.RetryAt)
	}
}
