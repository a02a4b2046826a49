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
	// Service is "namespace/name", as in tags.
	Service string
	// Since: without an existing owner, the oldest Service wins.
	Since time.Time
	// Link is nil if nothing is requested, or if there are Problems.
	Link     *service.PrivateLink
	Problems []service.Problem
	// Recorded counts while no tag exists, between deletion and replacement.
	Recorded bool
	Groups   []string
	// Held freezes the Private Link Service of the frontend.
	Held                         bool
	Local, FloatingIP, HTTPProbe bool
}

func (s Sharer) asks() bool { return s.Link != nil }

// Verdict is the decision for a frontend.
type Verdict struct {
	// Owner decides the settings; empty if none requests a Private Link Service.
	Owner string
	// Want is nil for none.
	Want *lb.PrivateLinkService
	// Holds is true if the request can't be met, so that nothing changes.
	Holds  bool
	Told   map[string][]service.Problem
	Warned map[string][]string
}

// Share resolves the owner of a frontend: by the tags of existing Private Link Services while that
// Service requests one, then by the record, then the oldest Service that requests one. Invalid
// requests change nothing.
func Share(f Frontend, settings Settings, services []Sharer, links []lb.PrivateLinkService) Verdict {
	v := Verdict{Told: map[string][]service.Problem{}, Warned: map[string][]string{}}
	services = slices.SortedFunc(slices.Values(services), func(a, b Sharer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Service, b.Service))
	})
	managed := Ours(f, links, settings)
	unread := false
	for _, s := range services {
		if len(s.Problems) > 0 {
			v.Told[s.Service], unread = s.Problems, true
		}
	}
	at := ownerAmong(f, settings, services, managed)
	if held := slices.IndexFunc(services, func(s Sharer) bool { return s.Held }); held >= 0 {
		v.Owner, v.Holds = services[held].Service, true
		return v
	}
	switch {
	case at < 0:
		v.Holds = unread && len(managed) > 0
		return v
	case !services[at].asks():
		v.Owner, v.Holds = services[at].Service, true
		return v
	}
	owner := services[at]
	v.Owner = owner.Service
	reason := refusals(f, owner.Service, len(managed) == 0, settings)
	v.Holds = len(reason) > 0
	link := resolved(*owner.Link, f, settings)
	for _, s := range services {
		if !s.asks() {
			continue
		}
		problems := reason
		if !v.Holds && s.Service != owner.Service {
			requested := resolved(*s.Link, f, settings)
			problems = requested.Unlike(&link, owner.Service)
		}
		if len(problems) > 0 {
			v.Told[s.Service] = problems
		}
		if v.Holds {
			continue
		}
		if w := warnings(s, link, f, settings); len(w) > 0 {
			v.Warned[s.Service] = w
		}
	}
	if !v.Holds {
		want := desired(link, owner.Service, f, settings)
		v.Want = &want
	}
	return v
}

// ownerAmong returns a negative index for none.
func ownerAmong(f Frontend, settings Settings, services []Sharer, managed []lb.PrivateLinkService) int {
	may := func(s Sharer) bool { return s.asks() || len(s.Problems) > 0 }
	tagged := -1
	for _, p := range managed {
		owner := OwnerOf(p)
		at := slices.IndexFunc(services, func(s Sharer) bool { return s.Service == owner && may(s) })
		if at >= 0 && services[at].asks() && desired(*services[at].Link, owner, f, settings).ID.Key() == p.ID.Key() {
			return at // with several, prefer the requested one
		}
		if tagged < 0 {
			tagged = at
		}
	}
	if tagged >= 0 {
		return tagged
	}
	if at := slices.IndexFunc(services, func(s Sharer) bool { return s.Recorded && may(s) }); at >= 0 {
		return at
	}
	return slices.IndexFunc(services, Sharer.asks)
}

// OwnerOf returns the Service in the tags of a Private Link Service, or "".
func OwnerOf(p lb.PrivateLinkService) string {
	return cmp.Or(lb.Tag(p.Tags, service.TagLinkOwner), lb.Tag(p.Tags, service.TagLinkOwnerBefore))
}

// Ours returns the cluster's Private Link Services that publish a frontend.
func Ours(f Frontend, links []lb.PrivateLinkService, settings Settings) []lb.PrivateLinkService {
	return slices.DeleteFunc(on(f, links), func(p lb.PrivateLinkService) bool { return foreign(p, settings) })
}

// SharerOf returns the [Sharer] for a Service's load balancer spec.
func SharerOf(name string, since time.Time, spec service.Spec, problems []service.Problem) Sharer {
	return Sharer{
		Service: name, Since: since, Link: spec.Link, Problems: problems,
		FloatingIP: slices.ContainsFunc(spec.Rules, func(r lb.Rule) bool { return r.FloatingIP }),
		HTTPProbe:  spec.ProbesHTTP(),
	}
}

// IsForeign reports whether the tags name no Service of the cluster.
func IsForeign(p lb.PrivateLinkService, settings Settings) bool { return foreign(p, settings) }

func foreign(p lb.PrivateLinkService, settings Settings) bool {
	return OwnerOf(p) == "" || !strings.EqualFold(lb.Tag(p.Tags, service.TagCluster), settings.ClusterName)
}

// on orders by id.
func on(f Frontend, links []lb.PrivateLinkService) []lb.PrivateLinkService {
	return slices.SortedFunc(func(yield func(lb.PrivateLinkService) bool) {
		for _, p := range links {
			if publishes(p, f.ID) && !yield(p) {
				return
			}
		}
	}, func(a, b lb.PrivateLinkService) int { return cmp.Compare(a.ID.Key(), b.ID.Key()) })
}

func publishes(p lb.PrivateLinkService, frontend string) bool {
	return slices.ContainsFunc(p.Frontends, func(id string) bool { return strings.EqualFold(id, frontend) })
}
