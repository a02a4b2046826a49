// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"cmp"
	"maps"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

// namespaceLimits enforces the limits of namespaces on one load balancer.
type namespaceLimits struct {
	*round
	loadBalancer lb.LoadBalancerID
	// counts counts existing Private Link Services by their tags, which tenants can't write, and new
	// ones of this round.
	counts map[string]int
	// namespaces are the namespaces that have or request one.
	namespaces map[string]bool
}

func (r *round) newNamespaceLimits(on lb.LoadBalancerID, services map[string]desired.FrontendService) *namespaceLimits {
	l := &namespaceLimits{round: r, loadBalancer: on, counts: map[string]int{}, namespaces: map[string]bool{}}
	for _, p := range r.links {
		if !desired.IsForeign(p, r.Settings) && countOthers(on, desired.Frontend{}, []lb.PrivateLinkService{p}) > 0 {
			namespace := desired.Namespace(desired.OwnerOf(p))
			l.counts[namespace]++
			l.namespaces[namespace] = true
		}
	}
	for _, s := range services {
		if s.Link != nil {
			l.namespaces[desired.Namespace(s.Service)] = true
		}
	}
	return l
}

// checkLimit applies the limit of frontends proportionally, because each Private Link Service needs a
// frontend.
func (l *namespaceLimits) checkLimit(namespace string) error {
	capacity := service.NamespaceCapacity{Max: cmp.Or(l.Settings.MaxPerLoadBalancer, lb.MaxPrivateLinkServices)}
	if capacity.Max != lb.MaxPrivateLinkServices {
		capacity.By = "maximumPrivateLinkServiceCount in azure.json"
	}
	shared := len(l.namespaces) > 1 || len(l.namespaces) == 1 && !l.namespaces[namespace]
	b := l.Cluster.NamespaceBounds(namespace).ShareOf(service.MaxFrontends, service.NamespaceCapacity{Max: lb.MaxFrontends}, capacity, shared)
	if would := l.counts[namespace] + 1; b.Max < capacity.Max && would > b.Max {
		return service.NewBoundExceededError(namespace, would, "Private Link Services", "load balancer "+l.loadBalancer.Name, b, service.MaxFrontends)
	}
	return nil
}

// servicesToRead returns the services with resource groups to read: those on the same
// frontends, plus the recorded groups of the requesting namespaces. Otherwise a namespace could
// hide Private Link Services in groups that its next Service doesn't name.
func servicesToRead(services map[string]desired.FrontendService, sharing map[string]bool, requests []*Request) map[string]desired.FrontendService {
	asking := map[string]bool{}
	for _, req := range requests {
		if req.requestsLink() {
			asking[desired.Namespace(req.Service)] = true
		}
	}
	read := maps.Clone(services)
	maps.DeleteFunc(read, func(owner string, s desired.FrontendService) bool {
		return !sharing[owner] && !asking[desired.Namespace(s.Service)]
	})
	for owner, s := range read {
		if !sharing[owner] {
			read[owner] = desired.FrontendService{Service: s.Service, ResourceGroups: s.ResourceGroups}
		}
	}
	return read
}

// ruleOwners returns lower-case owners.
func ruleOwners(shown lb.LoadBalancer) map[string]bool {
	owners := map[string]bool{}
	for _, r := range shown.Rules {
		owners[ruleOwner(r.Name)] = true
	}
	return owners
}
