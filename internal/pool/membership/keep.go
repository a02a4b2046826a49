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

// MemberRecord is the record of a pool: the addresses that Weir wrote, and those it set Down.
type MemberRecord struct {
	Written []netip.Addr
	Down    map[netip.Addr]DownRecord
}

// DownRecord is when and why Weir set an address Down.
type DownRecord struct {
	Since  time.Time
	Reason string
}

// RetainLeaving returns the set in which recorded nodes that a label excludes but that still serve are Down,
// until LeavingTimeout after they became Down. Nodes without a record do not join. recheckAt is when the first of
// them times out; zero if none does.
func (s Set) RetainLeaving(record MemberRecord, now time.Time) (kept Set, recheckAt time.Time) {
	kept = s
	for _, d := range s.ServingExcluded {
		down, isDown := record.Down[d.IP]
		until := down.Since.Add(LeavingTimeout)
		if !slices.Contains(record.Written, d.IP) || kept.hasAddress(d.IP) || isDown && !now.Before(until) {
			continue
		}
		if isDown && (recheckAt.IsZero() || until.Before(recheckAt)) {
			recheckAt = until
		}
		kept = kept.addRetained(d, true)
		kept.NonMembers = slices.DeleteFunc(slices.Clone(kept.NonMembers), func(a NonMember) bool { return a.Node == d.Node })
	}
	return kept, recheckAt
}

// RetainRemoved returns the set plus all recorded members, for use while the cluster cache may be stale. node
// returns the node of an address, whose draining state applies; false if unknown.
func (s Set) RetainRemoved(record MemberRecord, node func(netip.Addr) (Node, bool)) Set {
	kept := s
	for _, ip := range record.Written {
		if kept.hasAddress(ip) {
			continue
		}
		n, known := node(ip)
		if !known {
			n.Name = ip.String()
		}
		down, isDown := record.Down[ip]
		if reason := n.DrainReason; reason != "" {
			down.Reason, isDown = reason, true
		} else if known && n.Excluded == "" {
			isDown = false // no longer draining
		}
		kept = kept.addRetained(Drain{Node: n.Name, IP: ip, Reason: down.Reason}, isDown)
		kept.RetainedStale++
	}
	return kept
}

func (s Set) addRetained(d Drain, down bool) Set {
	a := lb.Address{Name: d.Node, IP: d.IP}
	if down {
		a.AdminState = lb.Down
		s.Draining = append(slices.Clip(s.Draining), d)
	}
	s.Addresses = append(slices.Clip(s.Addresses), a)
	s.Retained = append(slices.Clip(s.Retained), d.IP)
	return s.sortByName()
}

func (s Set) sortByName() Set {
	s.Addresses = slices.SortedFunc(slices.Values(s.Addresses), func(a, b lb.Address) int { return strings.Compare(a.Name, b.Name) })
	s.Draining = slices.SortedFunc(slices.Values(s.Draining), func(a, b Drain) int { return strings.Compare(a.Node, b.Node) })
	return s
}

func (s Set) hasAddress(ip netip.Addr) bool {
	return slices.ContainsFunc(s.Addresses, func(a lb.Address) bool { return a.IP == ip })
}
