// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
)

const (
	// atOnce: a write takes about 10 s, and ARM accepts about ten writes per second.
	atOnce = 32
	// deadline leaves the rest to the next round.
	deadline = 4 * time.Minute
	// mostRemoved limits removals per frontend and round, so that other Services don't wait for
	// hundreds. Two take about as long as creating a Private Link Service.
	mostRemoved = 2
)

type round struct {
	*Config
	// groups were read; readErrors are keyed by lower-case name.
	groups  []string
	failed  map[string]error
	seen    []lb.PrivateLinkService
	subnets *subnets
}

// Level reconciles the frontends of a load balancer in parallel and stores the outcomes in the
// requests.
func (k *Keeper) Level(ctx context.Context, b Balancer, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	on := k.cfg.Cluster.Sharers(ownersOn(b.Shown))
	r, requests := k.begin(ctx, requests, groupsOfNamespaces(on, ownersBeside(b.Shown, requests), requests))
	all := frontendsOf(b, requests, r.seen, r.Settings)
	limits := r.limits(b.Shown.ID, on)
	services := r.Cluster.Sharers(ownersOf(all))
	created := 0
	var works []*work
	for _, f := range all {
		f.On.Links, f.On.Exceeds = othersOn(b.Shown.ID, f.Frontend, r.seen)+created, limits.exceeds
		var of []privatelink.Sharer
		for _, owner := range f.owners {
			if s, there := services[owner]; there {
				s.Held = s.Held || r.unreadable(sharerGroups(s)) != nil
				of = append(of, s)
			}
		}
		w := &work{round: r, frontend: f, sharers: of, seen: r.seen}
		w.judge()
		if w.verdict.Want != nil && len(privatelink.Ours(f.Frontend, r.seen, r.Settings)) == 0 {
			created++
			limits.has[privatelink.Namespace(w.verdict.Owner)]++
			w.On.Exceeds = nil // a retry must not count it again
		}
		works = append(works, w)
	}
	carryOut(ctx, works)
	for _, req := range requests {
		if req.asks() && req.State == nil && req.Err == nil {
			req.State = &State{Reason: ReasonWaits, Text: "its frontend is not there yet"}
		}
	}
}

// Clear unpublishes frontends before their deletion. A request gets an error if one remains
// published.
func (k *Keeper) Clear(ctx context.Context, frontends map[string][]*Request, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	r, _ := k.begin(ctx, requests, nil)
	var works []*work
	for id, by := range frontends {
		if at := slices.IndexFunc(by, func(req *Request) bool { return req.Err != nil }); at >= 0 { // its other publishers are unknown
			for _, req := range by {
				req.fails(by[at].Err)
			}
			continue
		}
		f := frontend{Frontend: privatelink.Frontend{ID: id, Name: lastPart(id)}, by: by}
		works = append(works, &work{round: r, frontend: f, seen: r.seen, clears: true})
	}
	carryOut(ctx, works)
}

// Published returns the published ones of the given frontend ids.
func (l *Look) Published(ctx context.Context, req *Request, frontends []string) ([]string, error) {
	var links []lb.PrivateLinkService
	for _, group := range l.of.cfg.groups([]*Request{req}, nil) {
		some, err := l.group(ctx, group)
		if err != nil {
			return nil, err
		}
		links = append(links, some...)
	}
	return slices.DeleteFunc(slices.Clone(frontends), func(id string) bool {
		return privatelink.Holding(privatelink.Frontend{ID: id, Name: lastPart(id)}, links) == ""
	}), nil
}

// begin reads each resource group once and returns the requests with readable groups.
func (k *Keeper) begin(ctx context.Context, requests []*Request, services map[string]privatelink.Sharer) (r *round, readable []*Request) {
	r = &round{Config: &k.cfg, subnets: newSubnets(k.cfg.Azure), failed: map[string]error{}}
	for _, group := range k.cfg.groups(requests, services) {
		links, err := r.read(ctx, []string{group})
		if err != nil {
			r.failed[strings.ToLower(group)] = err
			continue
		}
		r.groups, r.seen = append(r.groups, group), append(r.seen, links...)
	}
	for _, req := range requests {
		req.Err, req.State, req.More = nil, nil, false
		if err := r.unreadable(k.cfg.groups([]*Request{req}, nil)); err != nil {
			req.fails(err)
			continue
		}
		readable = append(readable, req)
	}
	return r, readable
}

func (r *round) unreadable(groups []string) error {
	for _, group := range groups {
		if err := r.failed[strings.ToLower(group)]; err != nil {
			return err
		}
	}
	return nil
}

func carryOut(ctx context.Context, works []*work) {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, w := range works {
		all.Go(func() error {
			w.run(ctx)
			return nil
		})
	}
	_ = all.Wait() // errors are stored per frontend
	for _, w := range works {
		w.note()
	}
}

// run holds the lease, and retries once after a write conflict.
func (w *work) run(ctx context.Context) {
	again := false
	w.err = contest.Write(ctx, w.Lease, "private link service of frontend "+w.Name, w.Overtaken, func(ctx context.Context, valid func() bool) error {
		if again {
			links, err := w.read(ctx, w.groups)
			if err != nil {
				return err
			}
			w.seen = links
			w.judge()
		}
		again = true
		return w.advance(ctx, valid)
	})
}
