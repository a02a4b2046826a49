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

type story struct {
	explain.Story

	Kind, Namespace, Name string
	Told                  []told
	MorePools             int
}

type told struct {
	explain.Pool

	Is    string
	Level level
	Do    string
	Shown []explain.Member
}

// Limits of a story; a node may be in every pool.
const (
	shownMembers = 200 // per pool
	shownPools   = 100
)

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
	out.Pools = nil            // replaced by Told; do not cache twice
	slices.Reverse(out.Events) // newest first
	return out
}

func isOf(state string) string {
	switch state {
	case v1alpha1.ReasonLevel:
		return isLevel
	case v1alpha1.ReasonPending, v1alpha1.ReasonUpdating, v1alpha1.ReasonPace, v1alpha1.ReasonDeferred, v1alpha1.ReasonLeaving:
		return isUnderWay
	}
	return isWrong
}

func urgency(is string) int {
	return slices.Index([]string{explain.Missing, explain.Foreign, explain.LeftOut, explain.Down, explain.Leaving, explain.InPool}, is)
}

// Ready reports whether a condition of a Service has its healthy status.
func (s *story) Ready(kind, is string) bool {
	return (is == "True") != (kind == "weir.dev/Contested")
}

func (s *sheets) tell(kind string, ask func(context.Context, explain.Reader, string, string) (explain.Story, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace, name := r.PathValue("namespace"), r.PathValue("name")
		if s.Namespace != "" && namespace != "" && namespace != s.Namespace {
			s.problem(w, http.StatusNotFound, problem{Is: "It is in another namespace.", Why: "This page shows namespace " + s.Namespace + "."})
			return
		}
		details, err := take(r.Context(), s.cache, s.Namespace+" "+kind+" "+namespace+"/"+name, func(ctx context.Context) (*story, error) {
			details, err := ask(ctx, explain.Reader{API: s.API, Now: time.Now()}, namespace, name)
			if err != nil {
				return nil, err
			}
			return storyOf(details, kind, namespace, name), nil
		})
		if err != nil {
			s.failed(w, err)
			return
		}
		s.print(w, http.StatusOK, "story", sheet{Title: name, At: details.At, Brief: details.brief(), Body: details})
	}
}

func (s *story) brief() string {
	for _, t := range s.Told {
		if t.Is != isLevel {
			return t.Name + " is " + t.State + ": " + t.Level.Words()
		}
	}
	return s.Name + " is level"
}
