// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli/explain"
)

// memberCounts counts the desired and actual members of a pool: Wanted is the sum of In, Down and Missing.
type memberCounts struct {
	// Known is false before the first read of the pool.
	Known  bool
	Wanted int
	// In and Down are desired and present; Missing are desired and absent.
	In, Down, Missing int
	// Surplus and Foreign are present but not desired; Foreign belong to other owners.
	Surplus, Foreign int
}

func newMemberCounts(s *v1alpha1.BackendPoolStatus) memberCounts {
	if s.Desired == nil || s.Observed == nil {
		return memberCounts{}
	}
	l := memberCounts{Known: true, Wanted: int(*s.Desired), Down: int(ptr.Deref(s.DownCount, 0)), Foreign: int(ptr.Deref(s.Foreign, 0))}
	own := max(0, int(*s.Observed)-l.Foreign)
	l.Missing = max(0, l.Wanted-own)
	if m := s.Members; m != nil { // as many may be missing as are surplus; of the last attempt, when others may have been wanted
		l.Missing = min(max(l.Missing, memberCount(m.Missing)), l.Wanted)
	}
	l.Surplus = own - (l.Wanted - l.Missing)
	l.Down = min(l.Down, l.Wanted-l.Missing) // recorded, and maybe not in the pool any more
	l.In = l.Wanted - l.Missing - l.Down
	return l
}

// countMembers counts the listed members; if not all are listed, those of the last read.
func countMembers(p *explain.Pool, allListed bool) memberCounts {
	if p.Desired == nil || p.Observed == nil {
		return memberCounts{}
	}
	l := memberCounts{Known: true}
	for _, m := range p.Members {
		switch m.State {
		case explain.InPool:
			l.In++
		case explain.Down:
			l.Down++
		case explain.Missing:
			l.Missing++
		case explain.Leaving:
			l.Surplus++
		}
	}
	if !allListed {
		return newMemberCounts(&v1alpha1.BackendPoolStatus{Desired: p.Desired, Observed: p.Observed, Foreign: p.Foreign, DownCount: new(int32(l.Down))}) //nolint:gosec // a pool has at most some thousands
	}
	l.Foreign = int(ptr.Deref(p.Foreign, 0))
	l.Wanted = l.In + l.Down + l.Missing // members may have changed since the last attempt
	return l
}

func memberCount(sample *v1alpha1.MemberSample) int {
	if sample == nil {
		return 0
	}
	return int(sample.Count)
}

func (m memberCounts) Words() string {
	if !m.Known {
		return "not known yet"
	}
	parts := []string{fmt.Sprintf("%d of %d", m.In+m.Down, m.Wanted)}
	for _, s := range []struct {
		n     int
		label string
	}{{m.Down, "Down"}, {m.Missing, "missing"}, {m.Surplus, "surplus"}, {m.Foreign, "foreign"}} {
		if s.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", s.n, s.label))
		}
	}
	return strings.Join(parts, ", ")
}

// PercentPresent is the share of desired members that are present; 100 if none is desired.
func (m memberCounts) PercentPresent() int {
	switch {
	case !m.Known:
		return 0
	case m.Wanted == 0:
		return 100
	}
	return min(100, (m.In+m.Down)*100/m.Wanted)
}

// Over is the kind of undesired members shown above the bar.
func (m memberCounts) Over() string {
	switch {
	case m.Foreign > 0:
		return "foreign"
	case m.Surplus > 0:
		return "surplus"
	}
	return ""
}

// barSegment is a segment of a bar, in percent.
type barSegment struct {
	Class    string
	At, Wide float64
}

// Parts puts undesired members last.
func (m memberCounts) Parts() []barSegment {
	total := m.Wanted + m.Surplus + m.Foreign
	if !m.Known {
		return nil
	}
	if total == 0 {
		return []barSegment{{"in", 0, 100}}
	}
	var parts []barSegment
	at := 0.0
	for _, p := range []struct {
		class string
		n     int
	}{{"in", m.In}, {"down", m.Down}, {"missing", m.Missing}, {"surplus", m.Surplus}, {"foreign", m.Foreign}} {
		if p.n > 0 {
			wide := float64(p.n) * 100 / float64(total)
			parts = append(parts, barSegment{p.class, at, wide})
			at += wide
		}
	}
	return parts
}
