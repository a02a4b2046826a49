// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu"
)

// overran reports whether Azure has carried out a write although the resource was not as its
// sender had read it, which only one does that does not heed If-Match.
func overran(entry armemu.Call, created bool) bool {
	asked := entry.Kind == armemu.KindPut && entry.IfMatch != "" && entry.IfMatch != "*"
	return asked && entry.Status >= 200 && entry.Status < 300 && (created || entry.IfMatch != entry.EtagBefore)
}

// overrun excuses what such a write has undone: nobody but Azure could have kept it. What
// others have put there, or set Down, is lost, a pool that was deleted is there again, and what it has to
// hold is seen with the next look for drift. The caller holds s.mu.
func (s *Stage) overrun(k *pool) {
	held, there := s.holds(k)
	k.foreign = slices.DeleteFunc(k.foreign, func(f lb.Address) bool { return !slices.Contains(held, f) })
	maps.DeleteFunc(k.foreignDown, func(ip netip.Addr, _ bool) bool {
		return !slices.ContainsFunc(held, func(a lb.Address) bool { return a.IP == ip && a.AdminState == lb.Down })
	})
	if k.deleted && there { // with what others had there, which Weir has put there now
		k.deleted, k.left.put = false, map[netip.Addr]bool{}
		for _, a := range held {
			k.left.put[a.IP] = !s.cluster.has(a.IP)
		}
	}
	k.drifts()
}
