// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"cmp"
	"maps"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
)

// limits enforces the limits of namespaces on one load balancer.
type limits struct {
	*round
	on lb.LoadBalancerID
	// has counts existing Private Link Services by their tags, which tenants can't write, and new
	// ones of this round.
	has map[string]int
	// uses are the namespaces that have or request one.
	uses map[string]bool
}

func (r *round) limits(on lb.LoadBalancerID, services map[string]privatelink.Sharer) *limits {
	l := &limits{round: r, on: on, has: map[string]int{}, uses: map[string]bool{}}
	for _, p := range r.seen {
		if !privatelink.IsForeign(p, r.Settings) && othersOn(on, privatelink.Frontend{}, []lb.PrivateLinkService{p}) > 0 {
			namespace := privatelink.Namespace(privatelink.OwnerOf(p))
			l.has[namespace]++
			l.uses[namespace] = true
		}
	}
	for _, s := range services {
		if s.Link != nil {
			l.uses[privatelink.Namespace(s.Service)] = true
		}
	}
	return l
}

// exceeds applies the limit of frontends proportionally, because each Private Link Service needs a
// frontend.
func (l *limits) exceeds(namespace string) error {
	capacity := bound.Capacity{Max: cmp.Or(l.Settings.MostOnBalancer, lb.MostPrivateLinkServices)}
	if capacity.Max != lb.MostPrivateLinkServices {
		capacity.By = "maximumPrivateLinkServiceCount in azure.json"
	}
	shared := len(l.uses) > 1 || len(l.uses) == 1 && !l.uses[namespace]
	b := l.Cluster.Bounds(namespace).Part(bound.MaxFrontends, bound.Capacity{Max: lb.MaxFrontends}, capacity, shared)
	if would := l.has[namespace] + 1; b.Max < capacity.Max && would > b.Max {
		return bound.Exceeded(namespace, would, "Private Link Services", "load balancer "+l.on.Name, b, bound.MaxFrontends)
	}
	return nil
}

// groupsOfNamespaces returns the services with resource groups to read: those on the same
// frontends, plus the recorded groups of the requesting namespaces. Otherwise a namespace could
// hide Private Link Services in groups that its next Service doesn't name.
func groupsOfNamespaces(services map[string]privatelink.Sharer, sharing map[string]bool, requests []*Request) map[string]privatelink.Sharer {
	asking := map[string]bool{}
	for _, req := range requests {
		if req.asks() {
			asking[privatelink.Namespace(req.Service)] = true
		}
	}
	read := maps.Clone(services)
	maps.DeleteFunc(read, func(owner string, s privatelink.Sharer) bool {
		return !sharing[owner] && !asking[privatelink.Namespace(s.Service)]
	})
	for owner, s := range read {
		if !sharing[owner] {
			read[owner] = privatelink.Sharer{Service: s.Service, Groups: s.Groups}
		}
	}
	return read
}

// ownersOn returns lower-case owners.
func ownersOn(shown lb.LoadBalancer) map[string]bool {
	owners := map[string]bool{}
	for _, r := range shown.Rules {
		owners[ownerOf(r.Name)] = true
	}
	return owners
}
