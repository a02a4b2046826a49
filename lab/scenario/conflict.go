// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
)

// isIfMatchIgnored reports whether Azure applied a write to a resource that changed since it was read, which
// happens only if If-Match is ignored.
func isIfMatchIgnored(entry armemu.Call, created bool) bool {
	conditional := entry.Kind == armemu.KindPut && entry.IfMatch != "" && entry.IfMatch != "*"
	return conditional && entry.Status >= 200 && entry.Status < 300 && (created || entry.IfMatch != entry.EtagBefore)
}

// excuseConflict excuses what such a write undid: foreign addresses and states are lost, a deleted pool
// exists again, and the next drift read repairs the rest. The caller holds s.mu.
func (s *Stage) excuseConflict(k *pool) {
	held, ok := s.azureAddresses(k)
	k.foreign = slices.DeleteFunc(k.foreign, func(f lb.Address) bool { return !slices.Contains(held, f) })
	maps.DeleteFunc(k.foreignDown, func(ip netip.Addr, _ bool) bool {
		return !slices.ContainsFunc(held, func(a lb.Address) bool { return a.IP == ip && a.AdminState == lb.Down })
	})
	if k.deleted && ok { // including foreign addresses, which Weir added now
		k.deleted, k.orphaned.added = false, map[netip.Addr]bool{}
		for _, a := range held {
			k.orphaned.added[a.IP] = !s.cluster.hasAddress(a.IP)
		}
	}
	k.recordDrift()
}
