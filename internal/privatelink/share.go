// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Sharer is a Service on a frontend.
type Sharer struct {
	// Service is its namespace and name, as tags have it.
	Service string
	// Since is when it was created: among those that own nothing the oldest goes first.
	Since time.Time
	// Link is what it asks for; nil if it asks for none, or if its annotations have Problems.
	Link     *service.PrivateLink
	Problems []service.Problem
	// Recorded is true if it is on record as the owner: that counts where no tag tells, between the
	// end of what is replaced and the start of what takes its place.
	Recorded bool
	// Groups are the resource groups that are on record for it.
	Groups []string
	// Held is true if nothing of what it has is to be changed, whoever asks.
	Held bool
	// Local, FloatingIP and HTTPProbe are of its flows.
	Local, FloatingIP, HTTPProbe bool
}

// asks reports whether it wants a Private Link Service, as far as that can be read.
func (s Sharer) asks() bool { return s.Link != nil }

// Verdict is what the Services of a frontend come to.
type Verdict struct {
	// Owner is the Service whose word counts; empty if none asks.
	Owner string
	// Want is the Private Link Service that the frontend shall have; nil for none.
	Want *lb.PrivateLinkService
	// Holds is true if all stays as it is, because what is asked for cannot be.
	Holds bool
	// Told are the problems of each Service, Warned what will not work as it may expect.
	Told   map[string][]service.Problem
	Warned map[string][]string
}

// Share says whose word counts. The owner is whom the tags of what there is name, as long as it asks;
// then whoever is on record, then the oldest that asks. What cannot be read neither makes, changes nor removes anything.
func Share(f Frontend, set Settings, sharers []Sharer, seen []lb.PrivateLinkService) Verdict {
	v := Verdict{Told: map[string][]service.Problem{}, Warned: map[string][]string{}}
	sharers = slices.SortedFunc(slices.Values(sharers), func(a, b Sharer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Service, b.Service))
	})
	ours := Ours(f, seen, set)
	unread := false
	for _, s := range sharers {
		if len(s.Problems) > 0 {
			v.Told[s.Service], unread = s.Problems, true
		}
	}
	at := ownerAmong(f, set, sharers, ours)
	if held := slices.IndexFunc(sharers, func(s Sharer) bool { return s.Held }); held >= 0 {
		v.Owner, v.Holds = sharers[held].Service, true
		return v
	}
	switch {
	case at < 0:
		v.Holds = unread && len(ours) > 0
		return v
	case !sharers[at].asks():
		v.Owner, v.Holds = sharers[at].Service, true
		return v
	}
	owner := sharers[at]
	v.Owner = owner.Service
	why := refusals(f, owner.Service, len(ours) == 0, set)
	v.Holds = len(why) > 0
	link := resolved(*owner.Link, f, set)
	for _, s := range sharers {
		if !s.asks() {
			continue
		}
		told := why
		if !v.Holds && s.Service != owner.Service {
			asked := resolved(*s.Link, f, set)
			told = asked.Unlike(&link, owner.Service)
		}
		if len(told) > 0 {
			v.Told[s.Service] = told
		}
		if v.Holds {
			continue
		}
		if w := warnings(s, link, f, set); len(w) > 0 {
			v.Warned[s.Service] = w
		}
	}
	if !v.Holds {
		want := desired(link, owner.Service, f, set)
		v.Want = &want
	}
	return v
}

// ownerAmong is the place of the owner; negative if nobody asks.
func ownerAmong(f Frontend, set Settings, sharers []Sharer, ours []lb.PrivateLinkService) int {
	may := func(s Sharer) bool { return s.asks() || len(s.Problems) > 0 }
	tagged := -1
	for _, p := range ours {
		owner := OwnerOf(p)
		at := slices.IndexFunc(sharers, func(s Sharer) bool { return s.Service == owner && may(s) })
		if at >= 0 && sharers[at].asks() && desired(*sharers[at].Link, owner, f, set).ID.Key() == p.ID.Key() {
			return at // it asks for the very one, if there are several
		}
		if tagged < 0 {
			tagged = at
		}
	}
	if tagged >= 0 {
		return tagged
	}
	if at := slices.IndexFunc(sharers, func(s Sharer) bool { return s.Recorded && may(s) }); at >= 0 {
		return at
	}
	return slices.IndexFunc(sharers, Sharer.asks)
}

// OwnerOf is the Service that a Private Link Service is tagged with; empty for none.
func OwnerOf(p lb.PrivateLinkService) string {
	return cmp.Or(lb.Tag(p.Tags, service.TagLinkOwner), lb.Tag(p.Tags, service.TagLinkOwnerBefore))
}

// Ours are the Private Link Services of the cluster that publish a frontend.
func Ours(f Frontend, seen []lb.PrivateLinkService, set Settings) []lb.PrivateLinkService {
	return slices.DeleteFunc(on(f, seen), func(p lb.PrivateLinkService) bool { return foreign(p, set) })
}

// SharerOf is what a Service asks for by what it wants of its load balancer.
func SharerOf(name string, since time.Time, spec service.Spec, problems []service.Problem) Sharer {
	return Sharer{
		Service: name, Since: since, Link: spec.Link, Problems: problems,
		FloatingIP: slices.ContainsFunc(spec.Rules, func(r lb.Rule) bool { return r.FloatingIP }),
		HTTPProbe:  spec.ProbesHTTP(),
	}
}

// IsForeign reports whether no Service of the cluster has it, as far as its tags show.
func IsForeign(p lb.PrivateLinkService, set Settings) bool { return foreign(p, set) }

// foreign reports whether nobody of the cluster made it, as far as its tags tell.
func foreign(p lb.PrivateLinkService, set Settings) bool {
	return OwnerOf(p) == "" || !strings.EqualFold(lb.Tag(p.Tags, service.TagCluster), set.ClusterName)
}

// on are those that publish a frontend, in the order of their ids.
func on(f Frontend, seen []lb.PrivateLinkService) []lb.PrivateLinkService {
	return slices.SortedFunc(func(yield func(lb.PrivateLinkService) bool) {
		for _, p := range seen {
			if publishes(p, f.ID) && !yield(p) {
				return
			}
		}
	}, func(a, b lb.PrivateLinkService) int { return cmp.Compare(a.ID.Key(), b.ID.Key()) })
}

func publishes(p lb.PrivateLinkService, frontend string) bool {
	return slices.ContainsFunc(p.Frontends, func(id string) bool { return strings.EqualFold(id, frontend) })
}
