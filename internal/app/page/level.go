// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"k8s.io/utils/ptr"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app/explain"
)

// level is how many members a pool has of those that are wanted.
type level struct {
	// Known is false before the pool was read.
	Known  bool
	Wanted int
	// In and Down are wanted, and there; Missing are wanted, and not there.
	In, Down, Missing int
	// Surplus and Foreign are there, and not wanted: Weir's own, and those of others.
	Surplus, Foreign int
}

func levelOf(s *v1alpha1.BackendPoolStatus) level {
	if s.Desired == nil || s.Observed == nil {
		return level{}
	}
	l := level{Known: true, Wanted: int(*s.Desired), Down: int(ptr.Deref(s.DownCount, 0)), Foreign: int(ptr.Deref(s.Foreign, 0))}
	own := int(*s.Observed) - l.Foreign
	l.Missing, l.Surplus = max(0, l.Wanted-own), max(0, own-l.Wanted)
	if m := s.Members; m != nil { // as many may be missing as are surplus
		l.Missing, l.Surplus = count(m.Missing), count(m.Surplus)
	}
	l.In = max(0, l.Wanted-l.Missing-l.Down)
	return l
}

// levelOfMembers is that of a pool as its story tells it.
func levelOfMembers(p *explain.Pool) level {
	if p.Desired == nil || p.Observed == nil {
		return level{}
	}
	l := level{Known: true, Wanted: int(*p.Desired)}
	for _, m := range p.Members {
		switch m.Is {
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
	l.Foreign = int(ptr.Deref(p.Foreign, 0))
	l.Missing = max(l.Missing, l.Wanted-l.In-l.Down) // its status names some of them
	return l
}

func count(some *v1alpha1.SomeMembers) int {
	if some == nil {
		return 0
	}
	return int(some.Count)
}

// Words are what the bar shows.
func (l level) Words() string {
	if !l.Known {
		return "not known yet"
	}
	said := []string{fmt.Sprintf("%d of %d", l.In+l.Down, l.Wanted)}
	for _, s := range []struct {
		n    int
		what string
	}{{l.Down, "Down"}, {l.Missing, "missing"}, {l.Surplus, "surplus"}, {l.Foreign, "foreign"}} {
		if s.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	return strings.Join(said, ", ")
}

// Percent is how full a pool is; a pool of which nothing is wanted is full.
func (l level) Percent() int {
	switch {
	case !l.Known:
		return 0
	case l.Wanted == 0:
		return 100
	}
	return min(100, (l.In+l.Down)*100/l.Wanted)
}

// Over is what stands above the crest: members that are not wanted, of others or of Weir's own.
func (l level) Over() string {
	switch {
	case l.Foreign > 0:
		return "foreign"
	case l.Surplus > 0:
		return "surplus"
	}
	return ""
}

// part is a piece of a bar, in hundredths of its width.
type part struct {
	Is       string
	At, Wide float64
}

// Parts are the pieces of the bar from left to right. What is not wanted has room of its own at its end.
func (l level) Parts() []part {
	all := l.Wanted + l.Surplus + l.Foreign
	if !l.Known {
		return nil
	}
	if all == 0 {
		return []part{{"in", 0, 100}}
	}
	var parts []part
	at := 0.0
	for _, p := range []struct {
		is string
		n  int
	}{{"in", l.In}, {"down", l.Down}, {"missing", l.Missing}, {"surplus", l.Surplus}, {"foreign", l.Foreign}} {
		if p.n > 0 {
			wide := float64(p.n) * 100 / float64(all)
			parts = append(parts, part{p.is, at, wide})
			at += wide
		}
	}
	return parts
}
