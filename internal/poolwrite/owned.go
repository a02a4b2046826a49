// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// ours is what the ledger says of a pool.
type ours struct {
	written map[netip.Addr]struct{}
	// down are the addresses that are Down by us; nil if admin states are left alone.
	down map[netip.Addr]struct{}
}

// owned returns what the ledger holds, or, when Weir first takes the pool, the addresses that the
// cluster calls ours. What is Down then is somebody else's doing, unless nobody else writes the
// pool, and the node leaves: the BackendPool that had it on record is gone.
func owned(observed lb.Pool, want Desired, adminState bool) ours {
	recorded := want.Recorded
	has := ours{written: make(map[netip.Addr]struct{}, len(recorded.Written)+len(want.Addresses))}
	for _, ip := range recorded.Written {
		has.written[ip] = struct{}{}
	}
	if adminState {
		has.down = make(map[netip.Addr]struct{}, len(recorded.Down))
		for _, ip := range recorded.Down {
			has.down[ip] = struct{}{}
		}
	}
	if !recorded.Taken {
		for _, a := range observed.Addresses {
			if want.Ours(a.IP) {
				has.written[a.IP] = struct{}{}
			}
			if adminState && want.Alone && isDown(a) && slices.ContainsFunc(want.Addresses, func(w lb.Address) bool { return w.IP == a.IP && isDown(w) }) {
				has.down[a.IP] = struct{}{}
			}
		}
	}
	return has
}

// leftDown returns those of the addresses that are wanted, and Down in the pool. Of the others
// somebody has taken care; but a write of ours that was to set them so may be on its way.
func leftDown(ips []netip.Addr, wanted []lb.Address, observed lb.Pool) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(wanted, func(a lb.Address) bool { return a.IP == ip }) ||
			!slices.ContainsFunc(observed.Addresses, func(a lb.Address) bool { return a.IP == ip && a.AdminState == lb.Down })
	})
}
