// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// LeavingTimeout is how long a member that a label excludes remains in a pool, Down, while its node still
// serves.
const LeavingTimeout = 10 * time.Minute

// ReasonExcluded is the Down reason of such a member.
const ReasonExcluded = "excluded"

// OnRecord is the record of a pool: the addresses that Weir wrote, and those it set Down.
type OnRecord struct {
	Written []netip.Addr
	Down    map[netip.Addr]DownRecord
}

// DownRecord is when and why Weir set an address Down.
type DownRecord struct {
	Since time.Time
	Why   string
}

// KeepLeaving returns the set in which recorded nodes that a label excludes but that still serve are Down,
// until LeavingTimeout after they became Down. Nodes without a record do not join. again is when the first of
// them times out; zero if none does.
func (s Set) KeepLeaving(has OnRecord, now time.Time) (kept Set, again time.Time) {
	kept = s
	for _, d := range s.Leaving {
		down, isDown := has.Down[d.IP]
		until := down.Since.Add(LeavingTimeout)
		if !slices.Contains(has.Written, d.IP) || kept.has(d.IP) || isDown && !now.Before(until) {
			continue
		}
		if isDown && (again.IsZero() || until.Before(again)) {
			again = until
		}
		kept = kept.keep(d, true)
		kept.Absent = slices.DeleteFunc(slices.Clone(kept.Absent), func(a Absence) bool { return a.Node == d.Node })
	}
	return kept, again
}

// KeepRemoved returns the set plus all recorded members, for use while the cluster cache may be stale. node
// returns the node of an address, whose draining state applies; false if unknown.
func (s Set) KeepRemoved(has OnRecord, node func(netip.Addr) (Node, bool)) Set {
	kept := s
	for _, ip := range has.Written {
		if kept.has(ip) {
			continue
		}
		n, known := node(ip)
		if !known {
			n.Name = ip.String()
		}
		down, isDown := has.Down[ip]
		if why := n.Draining; why != "" {
			down.Why, isDown = why, true
		} else if known && n.Excluded == "" {
			isDown = false // no longer draining
		}
		kept = kept.keep(Drain{Node: n.Name, IP: ip, Why: down.Why}, isDown)
		kept.Held++
	}
	return kept
}

func (s Set) keep(d Drain, down bool) Set {
	a := lb.Address{Name: d.Node, IP: d.IP}
	if down {
		a.AdminState = lb.Down
		s.Draining = append(slices.Clip(s.Draining), d)
	}
	s.Addresses = append(slices.Clip(s.Addresses), a)
	s.Kept = append(slices.Clip(s.Kept), d.IP)
	return s.sorted()
}

func (s Set) sorted() Set {
	s.Addresses = slices.SortedFunc(slices.Values(s.Addresses), func(a, b lb.Address) int { return strings.Compare(a.Name, b.Name) })
	s.Draining = slices.SortedFunc(slices.Values(s.Draining), func(a, b Drain) int { return strings.Compare(a.Node, b.Node) })
	return s
}

func (s Set) has(ip netip.Addr) bool {
	return slices.ContainsFunc(s.Addresses, func(a lb.Address) bool { return a.IP == ip })
}
