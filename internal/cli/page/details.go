// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/cli"
	"weir.dev/weir/internal/cli/explain"
	"weir.dev/weir/internal/cli/status"
)

type detailPage struct {
	explain.Explanation

	Kind, Namespace, Name string
	ShownPools            []poolDetails
	MorePools             int
}

type poolDetails struct {
	explain.Pool

	Class  string
	Counts memberCounts
	Fix    string
	Shown  []explain.Member
}

// Limits of an explanation; a node may be in every pool.
const (
	maxMembers = 200 // per pool
	maxPools   = 100
)

func (p poolDetails) More() int { return len(p.Members) - len(p.Shown) }

func newDetailPage(s explain.Explanation, kind, namespace, name string) *detailPage {
	out := &detailPage{Explanation: s, Kind: kind, Namespace: namespace, Name: name}
	slices.SortStableFunc(s.Pools, func(a, b explain.Pool) int { return stateOrder(stateOf(&a)) - stateOrder(stateOf(&b)) })
	out.MorePools = max(0, len(s.Pools)-maxPools)
	for _, p := range s.Pools[:len(s.Pools)-out.MorePools] {
		t := poolDetails{Pool: p, Class: stateOf(&p), Counts: countMembers(&p, s.Node == nil && !s.NodesUnseen), Fix: status.RemedyOf(p.Cause, status.Problem{Namespace: p.Namespace, Name: p.Name})}
		slices.SortStableFunc(p.Members, func(a, b explain.Member) int { return cmp.Compare(memberOrder(a.State), memberOrder(b.State)) })
		t.Shown = p.Members[:min(len(p.Members), maxMembers)]
		out.ShownPools = append(out.ShownPools, t)
	}
	out.Pools = nil            // replaced by Told; do not cache twice
	slices.Reverse(out.Events) // newest first
	return out
}

func stateOf(p *explain.Pool) string {
	switch {
	case p.State == v1alpha1.ReasonInSync:
		return stateInSync
	case p.InProgress:
		return stateUpdating
	}
	return stateFailed
}

func memberOrder(state string) int {
	return slices.Index([]string{explain.Missing, explain.Foreign, explain.LeftOut, explain.Down, explain.Leaving, explain.InPool}, state)
}

// Ready reports whether a condition of a Service has its healthy status.
func (d *detailPage) Ready(kind, state string) bool {
	return (state == "True") != (kind == "weir.dev/Contested")
}

func (s *pageServer) serveDetails(kind string, ask func(context.Context, explain.Reader, string, string) (explain.Explanation, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace, name := r.PathValue("namespace"), r.PathValue("name")
		if s.Namespace != "" && namespace != "" && namespace != s.Namespace {
			s.serveErrorPage(w, http.StatusNotFound, errorPage{Title: "It is in another namespace.", Why: "This page shows namespace " + s.Namespace + "."})
			return
		}
		key, health := s.Namespace+" "+kind+" "+namespace+"/"+name, s.healthReader(r)
		if health != nil {
			key += " health"
		}
		details, err := getCached(r.Context(), s.cache, key, func(ctx context.Context) (*detailPage, error) {
			details, err := ask(ctx, explain.Reader{API: s.API, Now: time.Now(), Health: health}, namespace, name)
			if err != nil {
				return nil, err
			}
			return newDetailPage(details, kind, namespace, name), nil
		})
		if err != nil {
			s.serveError(w, err)
			return
		}
		s.renderPage(w, http.StatusOK, "story", pageData{Title: name, At: details.At, Summary: details.summaryText(), Body: details})
	}
}

// maxHealthWait leaves time for the rest of a page.
const maxHealthWait = 20 * time.Second

// healthReader returns nil unless the request is for Azure's health: the leader reads it from Azure, at most every ten seconds.
func (s *pageServer) healthReader(r *http.Request) func(ctx context.Context, namespace, pool string) (map[string]string, error) {
	if r.URL.Query().Get("health") != "true" {
		return nil
	}
	read := cli.NewHealthReader(s.Connection)
	return func(ctx context.Context, namespace, pool string) (map[string]string, error) {
		ctx, cancel := context.WithTimeout(ctx, maxHealthWait)
		defer cancel()
		return read(ctx, namespace, pool)
	}
}

func (d *detailPage) summaryText() string {
	for _, t := range d.ShownPools {
		if t.Class != stateInSync {
			return t.Name + " is " + t.State + ": " + t.Counts.Words()
		}
	}
	return d.Name + " is in sync"
}
