// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"cmp"
	"math"
)

// Stake is the traffic impact of a change on one pool.
type Stake struct {
	// Stays counts members that take new flows before and after the change, Leaves those that take
	// them only before, and Returns those that take them only after. Leaves includes members that
	// go Down, Returns those that Weir had set Down.
	Stays, Leaves, Returns int
}

// lost returns the share of the pool's new flows that is lost until the change is written, as a
// fraction: the flows to nodes that leave. All pools weigh the same, since their traffic is
// unknown. If no member takes flows now but one will, everything is lost; if no member remains, a
// write saves nothing.
func (s Stake) lost() (part, of int) {
	switch before, after := s.Stays+s.Leaves, s.Stays+s.Returns; {
	case after == 0:
		return 0, 1
	case before == 0:
		return 1, 1
	default:
		return s.Leaves, before
	}
}

// serve returns the number of members that serve throughout; MaxInt without a known change.
func (s Stake) serve() int {
	if s.Leaves == 0 && s.Returns == 0 {
		return math.MaxInt
	}
	return s.Stays
}

// compare orders changes by flows lost while waiting, most first. As all writes take about the same
// time, this order minimizes lost flows. Ties: more leaving nodes first, because they wait for the
// last of their pools; then fewer serving members, because each of them handles more.
func (s Stake) compare(other Stake) int {
	part, of := s.lost()
	otherPart, otherOf := other.lost()
	return cmp.Or(cmp.Compare(otherPart*of, part*otherOf), cmp.Compare(other.Leaves, s.Leaves), cmp.Compare(s.serve(), other.serve()))
}
