// SPDX-License-Identifier: Apache-2.0

package poolschedule

import "cmp"

// Stake is what a change of admin states is about in one pool.
type Stake struct {
	// Stays counts the members that take new flows and go on, Leaves those that take them and
	// are to be Down, Returns those that are Down by Weir and are to take them again.
	Stays, Leaves, Returns int
}

// lost is the share of the pool's new flows that is lost until the change is written, as a
// fraction: those that meet a node that leaves. What one pool has of flows nobody knows, so each
// pool counts the same; of a node that leaves, the pool with the fewest members beside it loses
// most. Two shares do not follow from that: where nobody takes flows at all, and somebody is to
// return, everything is lost; and where nobody is left to take them, a write saves nothing.
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

// compare orders changes by what is lost while they wait, most first. Each write takes about as
// long as any other, so no other order loses fewer flows. Of equals the one with more nodes that
// leave goes first: they wait for the last of their pools.
func (s Stake) compare(other Stake) int {
	part, of := s.lost()
	otherPart, otherOf := other.lost()
	return cmp.Or(cmp.Compare(otherPart*of, part*otherOf), cmp.Compare(other.Leaves, s.Leaves))
}
