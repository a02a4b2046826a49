// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// KeepMinAvailable keeps percent of the members up, rounded up and at least one, despite announced evictions: an
// announcement is unverified, and evicting all leaves no member for their flows. 0 disables the floor. Nodes
// that drain for another reason count as down.
//
// The first announced goes Down first, ties broken by name, so a later announcement does not affect earlier
// ones. The receiver is not modified.
func (s Set) KeepMinAvailable(percent int) Set {
	announced := 0
	for _, d := range s.Draining {
		if d.EvictionAnnounced {
			announced++
		}
	}
	up := len(s.Addresses) - len(s.Draining)
	allowed := up + announced - minAvailable(len(s.Addresses), percent)
	if announced <= max(allowed, 0) {
		return s
	}
	spared := make([]Drain, 0, announced)
	for _, d := range s.Draining {
		if d.EvictionAnnounced {
			spared = append(spared, d)
		}
	}
	slices.SortStableFunc(spared, func(a, b Drain) int { return a.EvictionAnnouncedAt.Compare(b.EvictionAnnouncedAt) })
	spared = spared[max(allowed, 0):]
	s = s.keepUp(spared)
	s.KeptUp = slices.SortedFunc(slices.Values(spared), func(a, b Drain) int { return cmp.Compare(a.Node, b.Node) })
	return s
}

func minAvailable(members, percent int) int {
	if percent <= 0 {
		return 0
	}
	return max((members*percent+99)/100, min(members, 1))
}

func (s Set) keepUp(drains []Drain) Set {
	ips := make(map[netip.Addr]struct{}, len(drains))
	for _, d := range drains {
		ips[d.IP] = struct{}{}
	}
	stays := func(ip netip.Addr) bool { _, ok := ips[ip]; return ok }
	s.Draining = slices.DeleteFunc(slices.Clone(s.Draining), func(d Drain) bool { return stays(d.IP) })
	s.Addresses = slices.Clone(s.Addresses)
	for i, a := range s.Addresses {
		if stays(a.IP) && a.AdminState == lb.Down {
			s.Addresses[i].AdminState = ""
		}
	}
	return s
}
