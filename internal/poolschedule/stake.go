// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"cmp"
	"math"
)

// Stake is the traffic impact of a change on one pool.
type Stake struct {
	// Members that take new flows before and after the change, only before, or only after it. Down
	// members take none.
	Stays, Leaves, Returns int
}

// lost returns the share of new flows lost until the change is written: those to leaving members.
// All pools weigh the same, because their traffic is unknown. If no member serves yet, everything
// is lost; if none will, a write saves nothing.
func (s Stake) lost() (part, total int) {
	switch before, after := s.Stays+s.Leaves, s.Stays+s.Returns; {
	case after == 0:
		return 0, 1
	case before == 0:
		return 1, 1
	default:
		return s.Leaves, before
	}
}

// serve returns the members that serve throughout; MaxInt without a known change.
func (s Stake) serve() int {
	if s.Leaves == 0 && s.Returns == 0 {
		return math.MaxInt
	}
	return s.Stays
}

// compare puts the highest loss first, which minimizes lost flows, because all writes take about
// the same time. Ties: more leaving nodes, because a node waits for the last of its pools; then
// fewer serving members.
func (s Stake) compare(other Stake) int {
	part, total := s.lost()
	otherPart, otherTotal := other.lost()
	return cmp.Or(cmp.Compare(otherPart*total, part*otherTotal), cmp.Compare(other.Leaves, s.Leaves), cmp.Compare(s.serve(), other.serve()))
}
