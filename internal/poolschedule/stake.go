// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"cmp"
	"math"
)

// Stake is what a change is about in one pool.
type Stake struct {
	// Stays counts the members that take new flows and go on, Leaves those that take them and
	// are to leave, or to be Down, Returns those that take none yet, or are Down by Weir, and are
	// to take them.
	Stays, Leaves, Returns int
}

// lost is the share of the pool's new flows that is lost until the change is written, as a
// fraction: those that meet a node that leaves. What one pool has of flows nobody knows, so each
// pool counts the same; of a node that leaves, the pool with the fewest members beside it loses
// most. Two shares do not follow from that: where nobody takes flows at all, and somebody is to
// take them, everything is lost; and where nobody is left to take them, a write saves nothing.
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

// serve is how many members take flows throughout. Where nothing changes, or nothing is known of
// the change, none are missed.
func (s Stake) serve() int {
	if s.Leaves == 0 && s.Returns == 0 {
		return math.MaxInt
	}
	return s.Stays
}

// compare orders changes by what is lost while they wait, most first. Each write takes about as
// long as any other, so no other order loses fewer flows. Of equals the one with more nodes that
// leave goes first: they wait for the last of their pools; then the one with the fewest members
// that serve: the others carry more.
func (s Stake) compare(other Stake) int {
	part, of := s.lost()
	otherPart, otherOf := other.lost()
	return cmp.Or(cmp.Compare(otherPart*of, part*otherOf), cmp.Compare(other.Leaves, s.Leaves), cmp.Compare(s.serve(), other.serve()))
}
