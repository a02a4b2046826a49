// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// FrontendService is a Service on a frontend.
type FrontendService struct {
	// Service is "namespace/name", as in tags.
	Service string
	// CreatedAt: without an existing owner, the oldest Service wins.
	CreatedAt time.Time
	// Link is nil if nothing is requested, or if there are Problems.
	Link     *service.PrivateLink
	Problems []service.Problem
	// IsRecordedOwner counts while no tag exists, between deletion and replacement.
	IsRecordedOwner bool
	ResourceGroups  []string
	// Frozen freezes the Private Link Service of the frontend.
	Frozen                       bool
	Local, FloatingIP, HTTPProbe bool
}

func (s FrontendService) requestsLink() bool { return s.Link != nil }

// Decision is the decision for a frontend.
type Decision struct {
	// Owner decides the settings; empty if none requests a Private Link Service.
	Owner string
	// Desired is nil for none.
	Desired *lb.PrivateLinkService
	// KeepCurrent is true if the request can't be met, so that nothing changes.
	KeepCurrent bool
	Problems    map[string][]service.Problem
	Warnings    map[string][]string
}

// ResolveOwner resolves the owner of a frontend: by the tags of existing Private Link Services while that
// Service requests one, then by the record, then the oldest Service that requests one. Invalid
// requests change nothing.
func ResolveOwner(f Frontend, settings Settings, services []FrontendService, links []lb.PrivateLinkService) Decision {
	v := Decision{Problems: map[string][]service.Problem{}, Warnings: map[string][]string{}}
	services = slices.SortedFunc(slices.Values(services), func(a, b FrontendService) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Service, b.Service))
	})
	managed := ManagedLinks(f, links, settings)
	unread := false
	for _, s := range services {
		if len(s.Problems) > 0 {
			v.Problems[s.Service], unread = s.Problems, true
		}
	}
	at := findOwner(f, settings, services, managed)
	if frozen := slices.IndexFunc(services, func(s FrontendService) bool { return s.Frozen }); frozen >= 0 {
		v.Owner, v.KeepCurrent = services[frozen].Service, true
		return v
	}
	switch {
	case at < 0:
		v.KeepCurrent = unread && len(managed) > 0
		return v
	case !services[at].requestsLink():
		v.Owner, v.KeepCurrent = services[at].Service, true
		return v
	}
	owner := services[at]
	v.Owner = owner.Service
	reason := validateFrontend(f, owner.Service, len(managed) == 0, settings)
	v.KeepCurrent = len(reason) > 0
	link := withDefaults(*owner.Link, f, settings)
	for _, s := range services {
		if !s.requestsLink() {
			continue
		}
		problems := reason
		if !v.KeepCurrent && s.Service != owner.Service {
			requested := withDefaults(*s.Link, f, settings)
			problems = requested.DiffFromOwner(&link, owner.Service)
		}
		if len(problems) > 0 {
			v.Problems[s.Service] = problems
		}
		if v.KeepCurrent {
			continue
		}
		if w := collectWarnings(s, link, f, settings); len(w) > 0 {
			v.Warnings[s.Service] = w
		}
	}
	if !v.KeepCurrent {
		want := buildDesired(link, owner.Service, f, settings)
		v.Desired = &want
	}
	return v
}

// findOwner returns a negative index for none.
func findOwner(f Frontend, settings Settings, services []FrontendService, managed []lb.PrivateLinkService) int {
	may := func(s FrontendService) bool { return s.requestsLink() || len(s.Problems) > 0 }
	tagged := -1
	for _, p := range managed {
		owner := OwnerOf(p)
		at := slices.IndexFunc(services, func(s FrontendService) bool { return s.Service == owner && may(s) })
		if at >= 0 && services[at].requestsLink() && buildDesired(*services[at].Link, owner, f, settings).ID.Key() == p.ID.Key() {
			return at // with several, prefer the requested one
		}
		if tagged < 0 {
			tagged = at
		}
	}
	if tagged >= 0 {
		return tagged
	}
	if at := slices.IndexFunc(services, func(s FrontendService) bool { return s.IsRecordedOwner && may(s) }); at >= 0 {
		return at
	}
	return slices.IndexFunc(services, FrontendService.requestsLink)
}

// OwnerOf returns the Service in the tags of a Private Link Service, or "".
func OwnerOf(p lb.PrivateLinkService) string {
	return cmp.Or(lb.TagValue(p.Tags, service.TagLinkOwner), lb.TagValue(p.Tags, service.TagLinkOwnerBefore))
}

// ManagedLinks returns the cluster's Private Link Services that publish a frontend.
func ManagedLinks(f Frontend, links []lb.PrivateLinkService, settings Settings) []lb.PrivateLinkService {
	return slices.DeleteFunc(linksOn(f, links), func(p lb.PrivateLinkService) bool { return isForeign(p, settings) })
}

// NewFrontendService returns the [FrontendService] for a Service's load balancer spec.
func NewFrontendService(name string, since time.Time, spec service.Spec, problems []service.Problem) FrontendService {
	return FrontendService{
		Service: name, CreatedAt: since, Link: spec.Link, Problems: problems,
		FloatingIP: slices.ContainsFunc(spec.Rules, func(r lb.Rule) bool { return r.FloatingIP }),
		HTTPProbe:  spec.ProbesHTTP(),
	}
}

// IsForeign reports whether the tags name no Service of the cluster.
func IsForeign(p lb.PrivateLinkService, settings Settings) bool { return isForeign(p, settings) }

func isForeign(p lb.PrivateLinkService, settings Settings) bool {
	return OwnerOf(p) == "" || !strings.EqualFold(lb.TagValue(p.Tags, service.TagCluster), settings.ClusterName)
}

// linksOn orders by id.
func linksOn(f Frontend, links []lb.PrivateLinkService) []lb.PrivateLinkService {
	return slices.SortedFunc(func(yield func(lb.PrivateLinkService) bool) {
		for _, p := range links {
			if hasFrontend(p, f.ID) && !yield(p) {
				return
			}
		}
	}, func(a, b lb.PrivateLinkService) int { return cmp.Compare(a.ID.Key(), b.ID.Key()) })
}

func hasFrontend(p lb.PrivateLinkService, frontend string) bool {
	return slices.ContainsFunc(p.Frontends, func(id string) bool { return strings.EqualFold(id, frontend) })
}
