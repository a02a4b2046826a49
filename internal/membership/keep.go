// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
)

// LeavingTimeout is how long a member that a label keeps out of every pool stays in one, Down,
// while something serves on its node.
const LeavingTimeout = 10 * time.Minute

// ReasonExcluded is why such a member is Down.
const ReasonExcluded = "excluded"

// OnRecord is what is on record of a pool: the addresses that Weir wrote, and those of them that it
// set Down, with the time and the reason.
type OnRecord struct {
	Written []netip.Addr
	Down    map[netip.Addr]DownRecord
}

// DownRecord says since when an address is Down by Weir, and why.
type DownRecord struct {
	Since time.Time
	Why   string
}

// KeepLeaving returns the set in which the nodes that a label keeps out, and that serve, are Down
// where they are on record, until LeavingTimeout has passed since they became Down. A node that is not
// on record does not join. Again is when the first of them times out; zero if none does.
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

// KeepRemoved returns the set that has, beside its own, all members on record: what is known of the
// cluster may be older than what is true. node returns the node of an address, false if it is not
// known; it says whether the node drains.
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
			isDown = false // it drains no more
		}
		kept = kept.keep(Drain{Node: n.Name, IP: ip, Why: down.Why}, isDown)
		kept.Held++
	}
	return kept
}

// keep adds a member that stays where it is in the pool.
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

// sorted has addresses and drains in the order of names.
func (s Set) sorted() Set {
	s.Addresses = slices.SortedFunc(slices.Values(s.Addresses), func(a, b lb.Address) int { return strings.Compare(a.Name, b.Name) })
	s.Draining = slices.SortedFunc(slices.Values(s.Draining), func(a, b Drain) int { return strings.Compare(a.Node, b.Node) })
	return s
}

// has reports whether an address is a member.
func (s Set) has(ip netip.Addr) bool {
	return slices.ContainsFunc(s.Addresses, func(a lb.Address) bool { return a.IP == ip })
}
