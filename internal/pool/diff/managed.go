// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

type managedSets struct {
	written map[netip.Addr]struct{}
	// down is nil if admin states are not managed.
	down map[netip.Addr]struct{}
}

// findManaged returns the record, or on takeover what it finds. Down ones are Weir's only if the node leaves and no
// other client writes the pool: a deleted BackendPool had recorded them.
func findManaged(observed lb.Pool, want Desired, adminState bool) managedSets {
	recorded := want.Record
	managed := managedSets{written: make(map[netip.Addr]struct{}, len(recorded.Written)+len(want.Addresses))}
	for _, ip := range recorded.Written {
		managed.written[ip] = struct{}{}
	}
	if adminState {
		managed.down = make(map[netip.Addr]struct{}, len(recorded.Down))
		for _, ip := range recorded.Down {
			managed.down[ip] = struct{}{}
		}
	}
	if !recorded.Managed {
		for _, a := range observed.Addresses {
			if want.IsManaged(a.IP) || want.isOwn(a) {
				managed.written[a.IP] = struct{}{}
			}
			if adminState && want.IsExclusive && isDown(a) && slices.ContainsFunc(want.Addresses, func(w lb.Address) bool { return w.IP == a.IP && isDown(w) }) {
				managed.down[a.IP] = struct{}{}
			}
		}
	}
	for _, a := range observed.Addresses {
		if want.isOfOtherCluster(a) {
			delete(managed.written, a.IP)
			delete(managed.down, a.IP)
		}
	}
	return managed
}

// filterDown returns the wanted ips that are Down; another client has reset the others.
func filterDown(ips []netip.Addr, wanted []lb.Address, observed lb.Pool) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(wanted, func(a lb.Address) bool { return a.IP == ip }) ||
			!slices.ContainsFunc(observed.Addresses, func(a lb.Address) bool { return a.IP == ip && a.AdminState == lb.Down })
	})
}
