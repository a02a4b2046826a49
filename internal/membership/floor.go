// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Floor keeps percent of the members up, rounded up, and one at least, whatever evictions are
// announced: an announcement is no more than somebody's word, and where all are evicted
// nobody else would take their flows. 0 keeps none. Whoever drains for another reason drains,
// and counts as one that is not up.
//
// Who was announced first goes Down first, so that another announcement changes nothing for
// those before it; at the same time the order of names decides. The set given stays as it is.
func (s Set) Floor(percent int) Set {
	announced := 0
	for _, d := range s.Draining {
		if d.Announced {
			announced++
		}
	}
	up := len(s.Addresses) - len(s.Draining)
	may := up + announced - minAvailable(len(s.Addresses), percent)
	if announced <= max(may, 0) {
		return s
	}
	spared := make([]Drain, 0, announced)
	for _, d := range s.Draining {
		if d.Announced {
			spared = append(spared, d)
		}
	}
	slices.SortStableFunc(spared, func(a, b Drain) int { return a.AnnouncedAt.Compare(b.AnnouncedAt) })
	return s.spare(spared[max(may, 0):])
}

// minAvailable is how many of so many members have to be up.
func minAvailable(members, percent int) int {
	if percent <= 0 {
		return 0
	}
	return max((members*percent+99)/100, min(members, 1))
}

// spare returns the set in which these stay up.
func (s Set) spare(drains []Drain) Set {
	ips := make(map[netip.Addr]struct{}, len(drains))
	for _, d := range drains {
		ips[d.IP] = struct{}{}
	}
	stays := func(ip netip.Addr) bool { _, ok := ips[ip]; return ok }
	s.Spared = slices.SortedFunc(slices.Values(drains), func(a, b Drain) int { return cmp.Compare(a.Node, b.Node) })
	s.Draining = slices.DeleteFunc(slices.Clone(s.Draining), func(d Drain) bool { return stays(d.IP) })
	s.Addresses = slices.Clone(s.Addresses)
	for i, a := range s.Addresses {
		if stays(a.IP) && a.AdminState == lb.Down {
			s.Addresses[i].AdminState = ""
		}
	}
	return s
}
