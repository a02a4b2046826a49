// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/app/explain"
	"weir.dev/weir/internal/app/status"
)

// story is what weir explain tells of one object, to look at.
type story struct {
	explain.Story

	// Kind, Namespace and Name are what was asked for.
	Kind, Namespace, Name string
	// Told are its pools, those that are wrong first; MorePools are not shown.
	Told      []told
	MorePools int
}

// told is a pool of a story.
type told struct {
	explain.Pool

	Is    string
	Level level
	Do    string
	// Shown are the first members, those that are not as they should be before the others.
	Shown []explain.Member
}

// What a story shows at most. A node may be in all pools that there are.
const (
	shownMembers = 200 // of a pool
	shownPools   = 100
)

// More is how many members are not shown.
func (t told) More() int { return len(t.Members) - len(t.Shown) }

func storyOf(s explain.Story, kind, namespace, name string) *story {
	out := &story{Story: s, Kind: kind, Namespace: namespace, Name: name}
	slices.SortStableFunc(s.Pools, func(a, b explain.Pool) int { return order(isOf(a.State)) - order(isOf(b.State)) })
	out.MorePools = max(0, len(s.Pools)-shownPools)
	for _, p := range s.Pools[:len(s.Pools)-out.MorePools] {
		t := told{Pool: p, Is: isOf(p.State), Level: levelOfMembers(&p), Do: status.RemedyOf(p.Cause, status.Wrong{Namespace: p.Namespace, Name: p.Name})}
		slices.SortStableFunc(p.Members, func(a, b explain.Member) int { return cmp.Compare(urgency(a.Is), urgency(b.Is)) })
		t.Shown = p.Members[:min(len(p.Members), shownMembers)]
		out.Told = append(out.Told, t)
	}
	out.Pools = nil            // what is not shown need not be kept
	slices.Reverse(out.Events) // the newest is what one asks for
	return out
}

// isOf is how a pool is by its state alone.
func isOf(state string) string {
	switch state {
	case v1alpha1.ReasonLevel:
		return isLevel
	case v1alpha1.ReasonPending, v1alpha1.ReasonUpdating, v1alpha1.ReasonPace, v1alpha1.ReasonDeferred, v1alpha1.ReasonLeaving:
		return isUnderWay
	}
	return isWrong
}

// urgency orders members: what is missing comes first, what is as it should be last.
func urgency(is string) int {
	return slices.Index([]string{explain.Missing, explain.Foreign, explain.LeftOut, explain.Down, explain.Leaving, explain.InPool}, is)
}

// Ready is a condition of a Service that is as it should be.
func (s *story) Ready(kind, is string) bool {
	return (is == "True") != (kind == "weir.dev/Contested")
}

// tell answers with the story of one object.
func (s *sheets) tell(kind string, ask func(context.Context, explain.Reader, string, string) (explain.Story, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace, name := r.PathValue("namespace"), r.PathValue("name")
		if s.Namespace != "" && namespace != "" && namespace != s.Namespace {
			s.problem(w, http.StatusNotFound, problem{Is: "It is in another namespace.", Why: "This page shows namespace " + s.Namespace + "."})
			return
		}
		told, err := take(r.Context(), s.cache, s.Namespace+" "+kind+" "+namespace+"/"+name, func(ctx context.Context) (*story, error) {
			told, err := ask(ctx, explain.Reader{API: s.API, Now: time.Now()}, namespace, name)
			if err != nil {
				return nil, err
			}
			return storyOf(told, kind, namespace, name), nil
		})
		if err != nil {
			s.failed(w, err)
			return
		}
		s.print(w, http.StatusOK, "story", sheet{Title: name, At: told.At, Brief: told.brief(), Body: told})
	}
}

// brief is what there is to say in a line.
func (s *story) brief() string {
	for _, t := range s.Told {
		if t.Is != isLevel {
			return t.Name + " is " + t.State + ": " + t.Level.Words()
		}
	}
	return s.Name + " is level"
}
