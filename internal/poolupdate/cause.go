// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"net/netip"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
)

// cause says for which kinds of operations an attempt was made. What it only took along
// counts once it is settled, too.
type cause struct{ member, fresh, admin bool }

func causeOf(ops []Operation, settled bool) cause {
	var c cause
	for _, op := range ops {
		if op.carried && !settled {
			continue
		}
		c.fresh = c.fresh || op.fresh()
		c.admin = c.admin || op.Admin
		c.member = c.member || op.member() && !op.carried
	}
	return c
}

// onlyCarried reports whether what was due is gone, and only what it was to take along is left: that
// waits for its own time.
func onlyCarried(ops []Operation) bool {
	return !slices.ContainsFunc(ops, func(op Operation) bool { return !op.carried })
}

// oldestChange returns when the oldest change of the membership was seen.
func oldestChange(ops []Operation) time.Time {
	var oldest time.Time
	for _, op := range ops {
		if op.member() {
			oldest = earlier(oldest, op.ChangedAt)
		}
	}
	return oldest
}

// learn returns which addresses people did not know to be Down, or to be so no more. Of a
// process that has read nothing yet they know what the ledger says; so a write whose answer
// was lost is told when the next read shows it.
func (h history) learn(r result) (next history, downed, restored []netip.Addr) {
	if r.ledger != nil && !h.downKnown {
		h.down, h.downKnown = r.ledger.Down, true
	}
	if !r.directed() {
		return h, nil, nil
	}
	wanted := func(ip netip.Addr) bool {
		return slices.ContainsFunc(r.wanted, func(a lb.Address) bool { return a.IP == ip })
	}
	downed, restored = slices.Clone(r.downed), slices.Clone(r.restored)
	for _, ip := range r.down {
		if !slices.Contains(h.down, ip) {
			downed = append(downed, ip)
		}
	}
	for _, ip := range h.down {
		if !slices.Contains(r.down, ip) && wanted(ip) {
			restored = append(restored, ip)
		}
	}
	h.down = r.down
	return h, sorted(downed), sorted(restored)
}
