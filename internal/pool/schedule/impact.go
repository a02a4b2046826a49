// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"math"
)

// Impact is the traffic impact of a change on one pool.
type Impact struct {
	// Members that take new flows before and after the change, only before, or only after it.
	Serving, Stopping, Starting int
}

// lossRatio returns the share of new flows lost until the change is written. All pools weigh the same, because their
// traffic is unknown. If no member serves yet, everything is lost; if none will, a write saves nothing.
func (s Impact) lossRatio() (part, total int) {
	switch before, after := s.Serving+s.Stopping, s.Serving+s.Starting; {
	case after == 0:
		return 0, 1
	case before == 0:
		return 1, 1
	default:
		return s.Stopping, before
	}
}

// servingMembers returns the members that serve throughout; MaxInt without a known change.
func (s Impact) servingMembers() int {
	if s.Stopping == 0 && s.Starting == 0 {
		return math.MaxInt
	}
	return s.Serving
}

// compareImpact puts the highest loss first, because all writes take about the same time; then more leaving nodes,
// because a node waits for the last of its pools; then fewer serving members.
func (s Impact) compareImpact(other Impact) int {
	part, total := s.lossRatio()
	otherPart, otherTotal := other.lossRatio()
	return cmp.Or(cmp.Compare(otherPart*total, part*otherTotal), cmp.Compare(other.Stopping, s.Stopping), cmp.Compare(s.servingMembers(), other.servingMembers()))
}
