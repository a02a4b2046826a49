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
	// atOnce bounds the frontends that are worked on side by side: a write takes some ten seconds,
	// and Azure Resource Manager takes ten writes a second.
	atOnce = 32
	// deadline bounds a round. What it leaves undone is found by the next one.
	deadline = 4 * time.Minute
	// mostRemoved bounds the connections of one frontend that go in a round: two take Azure as long as
	// what comes anew may take, and whoever waits for the next round waits no longer for hundreds.
	mostRemoved = 2
)

// round is what is known of the Private Link Services that one round is about.
type round struct {
	*Config
	// groups are those that could be read, and failed is why the others could not, by their names in
	// lower case.
	groups  []string
	failed  map[string]error
	seen    []lb.PrivateLinkService
	subnets *subnets
}

// Level has the frontends of a load balancer published as the Services on them ask, side by side.
// What came of it is noted on the requests.
func (k *Keeper) Level(ctx context.Context, b Balancer, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	on := k.cfg.Cluster.Sharers(ownersOn(b.Shown))
	r, requests := k.begin(ctx, requests, groupsOfNamespaces(on, ownersBeside(b.Shown, requests), requests))
	all := frontendsOf(b, requests, r.seen, r.Settings)
	limits := r.limits(b.Shown.ID, on)
	sharers := r.Cluster.Sharers(ownersOf(all))
	comes := 0
	var works []*work
	for _, f := range all {
		f.On.Links, f.On.Exceeds = othersOn(b.Shown.ID, f.Frontend, r.seen)+comes, limits.exceeds
		var of []privatelink.Sharer
		for _, owner := range f.owners {
			if s, there := sharers[owner]; there {
				s.Held = s.Held || r.unreadable(sharerGroups(s)) != nil
				of = append(of, s)
			}
		}
		w := &work{round: r, frontend: f, sharers: of, seen: r.seen}
		w.judge()
		if w.verdict.Want != nil && len(privatelink.Ours(f.Frontend, r.seen, r.Settings)) == 0 {
			comes++
			limits.has[privatelink.Namespace(w.verdict.Owner)]++
			w.On.Exceeds = nil // a second try does not count it again
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

// Clear removes what publishes frontends that are about to go. A request has an error if one of them is
// published then, by whomsoever.
func (k *Keeper) Clear(ctx context.Context, frontends map[string][]*Request, requests []*Request) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	r, _ := k.begin(ctx, requests, nil)
	var works []*work
	for id, by := range frontends {
		if at := slices.IndexFunc(by, func(req *Request) bool { return req.Err != nil }); at >= 0 { // nobody knows what else publishes it
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

// Published returns which of these frontends, by their ids, a Private Link Service publishes.
func (l *Look) Published(ctx context.Context, req *Request, frontends []string) ([]string, error) {
	var seen []lb.PrivateLinkService
	for _, group := range l.of.cfg.groups([]*Request{req}, nil) {
		some, err := l.group(ctx, group)
		if err != nil {
			return nil, err
		}
		seen = append(seen, some...)
	}
	return slices.DeleteFunc(slices.Clone(frontends), func(id string) bool {
		return privatelink.Holding(privatelink.Frontend{ID: id, Name: lastPart(id)}, seen) == ""
	}), nil
}

// begin reads what there is, once each resource group, and returns the requests that it is enough for. The
// others have failed: a group that cannot be read is trouble of those alone who name it.
func (k *Keeper) begin(ctx context.Context, requests []*Request, sharers map[string]privatelink.Sharer) (r *round, readable []*Request) {
	r = &round{Config: &k.cfg, subnets: newSubnets(k.cfg.Azure), failed: map[string]error{}}
	for _, group := range k.cfg.groups(requests, sharers) {
		some, err := r.read(ctx, []string{group})
		if err != nil {
			r.failed[strings.ToLower(group)] = err
			continue
		}
		r.groups, r.seen = append(r.groups, group), append(r.seen, some...)
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

// unreadable is why one of these resource groups could not be read; nil if none failed.
func (r *round) unreadable(groups []string) error {
	for _, group := range groups {
		if err := r.failed[strings.ToLower(group)]; err != nil {
			return err
		}
	}
	return nil
}

// carryOut works on frontends side by side, and then notes what came of it.
func carryOut(ctx context.Context, works []*work) {
	var all errgroup.Group
	all.SetLimit(atOnce)
	for _, w := range works {
		all.Go(func() error {
			w.run(ctx)
			return nil
		})
	}
	_ = all.Wait() // each error is that of its Services
	for _, w := range works {
		w.note()
	}
}

// run works on a frontend while the lease is held, and once more if somebody else wrote in between.
func (w *work) run(ctx context.Context) {
	again := false
	w.err = contest.Write(ctx, w.Lease, "private link service of frontend "+w.Name, w.Overtaken, func(ctx context.Context, valid func() bool) error {
		if again {
			seen, err := w.read(ctx, w.groups)
			if err != nil {
				return err
			}
			w.seen = seen
			w.judge()
		}
		again = true
		return w.advance(ctx, valid)
	})
}
