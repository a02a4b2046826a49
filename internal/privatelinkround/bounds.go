// SPDX-License-Identifier: Apache-2.0

package privatelinkround

import (
	"cmp"
	"maps"

	"weir.dev/weir/internal/bound"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelink"
)

// limits are the bounds of namespaces on the Private Link Services of one load balancer.
type limits struct {
	*round
	on lb.LoadBalancerID
	// has counts the Private Link Services of each namespace: those that Azure shows, by their tags,
	// which no tenant can write, and those that this round creates.
	has map[string]int
	// uses are the namespaces that have one, or have a Service on the load balancer that asks for one.
	uses map[string]bool
}

func (r *round) limits(on lb.LoadBalancerID, sharers map[string]privatelink.Sharer) *limits {
	l := &limits{round: r, on: on, has: map[string]int{}, uses: map[string]bool{}}
	for _, p := range r.seen {
		if !privatelink.IsForeign(p, r.Settings) && othersOn(on, privatelink.Frontend{}, []lb.PrivateLinkService{p}) > 0 {
			namespace := privatelink.Namespace(privatelink.OwnerOf(p))
			l.has[namespace]++
			l.uses[namespace] = true
		}
	}
	for _, s := range sharers {
		if s.Link != nil {
			l.uses[privatelink.Namespace(s.Service)] = true
		}
	}
	return l
}

// exceeds returns why one more would exceed the bound of a namespace. A Private Link Service is of a
// frontend, so an annotation that allows more frontends than the default allows as large a part of these.
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

// groupsOfNamespaces returns the sharers whose groups are read: those beside the requests, and what is
// on record of the others in the namespaces that ask. Otherwise a namespace would hide what it has in
// resource groups that its next Service does not name.
func groupsOfNamespaces(sharers map[string]privatelink.Sharer, beside map[string]bool, requests []*Request) map[string]privatelink.Sharer {
	asking := map[string]bool{}
	for _, req := range requests {
		if req.asks() {
			asking[privatelink.Namespace(req.Service)] = true
		}
	}
	read := maps.Clone(sharers)
	maps.DeleteFunc(read, func(owner string, s privatelink.Sharer) bool {
		return !beside[owner] && !asking[privatelink.Namespace(s.Service)]
	})
	for owner, s := range read {
		if !beside[owner] {
			read[owner] = privatelink.Sharer{Service: s.Service, Groups: s.Groups}
		}
	}
	return read
}

// ownersOn are the owners of the rules of a load balancer, in lower case.
func ownersOn(shown lb.LoadBalancer) map[string]bool {
	owners := map[string]bool{}
	for _, r := range shown.Rules {
		owners[ownerOf(r.Name)] = true
	}
	return owners
}
