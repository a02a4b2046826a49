// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	onlyLoadBalancers = []Scope{ScopeLoadBalancer}
	onlyRoots         = []Scope{ScopeLoadBalancer, ScopeVirtualNetwork}
)

// A load balancer's limits by SKU: rules, frontends.
var lbLimits = map[string]struct{ rules, frontends int }{
	"basic":    {250, 200},
	"standard": {1500, 600},
}

const maxLoadBalancers = 1000

func nameRules() []Rule {
	return []Rule{
		{
			Name: "resource-name", On: KindPut, Scopes: []Scope{ScopeLoadBalancer, ScopePool, ScopeVirtualNetwork, ScopeSubnet},
			Code: "InvalidResourceName", CodeTag: Observed, Tag: Documented,
			Requires: "A name has 1 to 80 letters, digits, underscores, periods and hyphens, begins with a letter or digit and ends with a letter, digit or underscore.",
			Source:   "naming rules for Azure resources, Microsoft.Network", check: validName,
		},
		{
			Name: "location", On: KindPut, Scopes: onlyRoots, Code: "LocationRequired", CodeTag: Observed, Tag: Observed,
			Requires: "`location` is present.", Source: "error bodies in public issues", check: hasLocation,
		},
		{
			Name: "child-names", On: KindPut, Scopes: onlyRoots, Code: "InvalidRequestFormat", CodeTag: Assumed, Tag: Assumed,
			Requires: "Every child has a name.", Source: "none found", check: childrenNamed,
		},
		{
			Name: "child-names-unique", On: KindPut, Scopes: onlyRoots, Code: "DuplicateResourceName", CodeTag: Observed, Tag: Assumed,
			Requires: "No two children of one collection have the same name; case does not matter.",
			Source:   "by analogy with the addresses of a pool", check: uniqueChildNames,
		},
	}
}

func loadBalancerRules() []Rule {
	return []Rule{
		{
			Name: "sku-fixed", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerSkuCannotBeChanged", CodeTag: Assumed, Tag: Documented,
			Requires: "The SKU of an existing load balancer stays what it is; no SKU means Basic.",
			Source:   "upgrade guidance from Basic to Standard", check: skuFixed,
		},
		{
			Name: "rule-limit", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerRuleLimitReached", CodeTag: Assumed, Tag: Documented,
			Requires: "At most 1,500 load balancing rules (Standard) or 250 (Basic).",
			Source:   "Azure subscription limits", check: ruleLimit,
		},
		{
			Name: "frontend-limit", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerFrontendLimitReached", CodeTag: Assumed, Tag: Documented,
			Requires: "At most 600 frontend IP configurations (Standard) or 200 (Basic).",
			Source:   "Azure subscription limits", check: frontendLimit,
		},
		{
			Name: "load-balancer-limit", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerCountLimitReached", CodeTag: Assumed, Tag: Documented,
			Requires: "At most 1,000 load balancers in a subscription and region.",
			Source:   "Azure subscription limits", check: loadBalancerLimit,
		},
		{
			Name: "references-exist", On: KindPut, Scopes: onlyLoadBalancers, Code: "InvalidResourceReference", CodeTag: Observed, Tag: Observed,
			Requires: "What a rule names of its own load balancer (frontend, pool, probe) is in the same body; so a PUT cannot drop a pool that a rule uses.",
			Source:   "pulumi/pulumi-azure-native#3601", check: referencesExist,
		},
	}
}

func deleteRules() []Rule {
	return []Rule{
		{
			Name: "pool-not-in-use", On: KindDelete, Scopes: onlyPools, Code: "InUseBackendAddressPoolCannotBeDeleted", CodeTag: Assumed, Tag: Assumed,
			Requires: "No rule of the load balancer uses the pool.",
			Source:   "by analogy with subnets", check: poolUnused,
		},
		{
			Name: "subnet-not-in-use", On: KindDelete, Scopes: []Scope{ScopeSubnet}, Code: "InUseSubnetCannotBeDeleted", CodeTag: Observed, Tag: Observed,
			Requires: "No pool and no frontend refers to the subnet.",
			Source:   "common deployment errors page", check: networkUnused,
		},
		{
			Name: "network-not-in-use", On: KindDelete, Scopes: []Scope{ScopeVirtualNetwork}, Code: "InUseVirtualNetworkCannotBeDeleted", CodeTag: Assumed, Tag: Assumed,
			Requires: "No pool and no frontend refers to the virtual network or one of its subnets.",
			Source:   "by analogy with subnets", check: networkUnused,
		},
	}
}

var validNames = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$`)

func validName(s *subject) string {
	if !validNames.MatchString(s.self.leaf()) {
		return fmt.Sprintf("Resource name %q is invalid. The name can be up to 80 characters long. It must begin with a word character, and it must end with a word character or with '_'. The name may contain word characters or '.', '-', '_'.", s.self.leaf())
	}
	return ""
}

func hasLocation(s *subject) string {
	if text(s.body, "location") == "" {
		return "The location property is required for this definition."
	}
	return ""
}

// children calls f for each collection of a root until it returns a message.
func (s *subject) children(f func(collection string, list []fields) string) string {
	for _, k := range s.self.root.children {
		if wrong := f(k.collection, objects(properties(s.body), k.collection)); wrong != "" {
			return wrong
		}
	}
	return ""
}

func childrenNamed(s *subject) string {
	return s.children(func(collection string, list []fields) string {
		if i := indexByName(list, ""); i >= 0 {
			return fmt.Sprintf("Resource %s: %s[%d] has no name.", s.self, collection, i)
		}
		return ""
	})
}

func uniqueChildNames(s *subject) string {
	return s.children(func(collection string, list []fields) string {
		seen := map[string]bool{}
		for _, c := range list {
			name := strings.ToLower(text(c, "name"))
			if seen[name] {
				return fmt.Sprintf("Resource %s has two child resources with the same name (%s) in %s.", s.self, text(c, "name"), collection)
			}
			seen[name] = true
		}
		return ""
	})
}

func skuFixed(s *subject) string {
	if s.before != nil && !sameName(sku(s.before), sku(s.body)) {
		return fmt.Sprintf("The SKU of load balancer %s cannot change from %s to %s.", s.self, sku(s.before), sku(s.body))
	}
	return ""
}

func ruleLimit(s *subject) string {
	n := len(objects(properties(s.body), lbRules))
	if limit, ok := lbLimits[strings.ToLower(sku(s.body))]; ok && n > limit.rules {
		return fmt.Sprintf("Load balancer %s has %d load balancing rules; the limit of SKU %s is %d.", s.self, n, sku(s.body), limit.rules)
	}
	return ""
}

func frontendLimit(s *subject) string {
	n := len(objects(properties(s.body), frontends))
	if limit, ok := lbLimits[strings.ToLower(sku(s.body))]; ok && n > limit.frontends {
		return fmt.Sprintf("Load balancer %s has %d frontend IP configurations; the limit of SKU %s is %d.", s.self, n, sku(s.body), limit.frontends)
	}
	return ""
}

func loadBalancerLimit(s *subject) string {
	if s.before != nil {
		return ""
	}
	n := 0
	for _, agg := range s.e.aggregates {
		if agg.id.root == loadBalancerKind && sameName(agg.id.subscription, s.self.subscription) &&
			sameName(text(agg.body, "location"), text(s.body, "location")) {
			n++
		}
	}
	if n >= maxLoadBalancers {
		return fmt.Sprintf("Subscription %s has %d load balancers in %s; the limit is %d.", s.self.subscription, n, text(s.body, "location"), maxLoadBalancers)
	}
	return ""
}

func referencesExist(s *subject) string {
	own := s.self.key() + "/"
	have := map[string]bool{}
	_ = s.children(func(collection string, list []fields) string {
		for _, c := range list {
			have[own+strings.ToLower(collection+"/"+text(c, "name"))] = true
		}
		return ""
	})
	return s.children(func(collection string, list []fields) string {
		for _, c := range list {
			for _, id := range slices.Sorted(maps.Keys(referencedIDs(c))) {
				if strings.HasPrefix(id, own) && !have[id] {
					return dangling(id, s.self.String()+"/"+collection+"/"+text(c, "name"))
				}
			}
		}
		return ""
	})
}

func poolUnused(s *subject) string {
	for _, collection := range []string{lbRules, outRules, natRules} {
		for _, rule := range objects(properties(s.root), collection) {
			if referencedIDs(rule)[s.self.key()] {
				return fmt.Sprintf("Backend address pool %s is in use by %s/%s/%s and cannot be deleted.", s.self, s.self.rootID(), collection, text(rule, "name"))
			}
		}
	}
	return ""
}

// networkUnused looks at every load balancer: pools, their addresses and
// frontends may name a virtual network or a subnet.
func networkUnused(s *subject) string {
	for _, agg := range s.e.sorted() {
		if agg.id.root != loadBalancerKind {
			continue
		}
		for _, k := range []*childKind{poolKind, loadBalancerKind.child(frontends)} {
			for _, c := range objects(properties(agg.body), k.collection) {
				users := append([]fields{properties(c)}, propertiesOf(objects(properties(c), addresses))...)
				if slices.ContainsFunc(users, s.names) {
					return fmt.Sprintf("Resource %s is in use by %s and cannot be deleted.", s.self, agg.id.withChild(k, text(c, "name")))
				}
			}
		}
	}
	return ""
}

// names tells whether the properties refer to the subject or to a child of it.
func (s *subject) names(props fields) bool {
	for _, key := range []string{"virtualNetwork", "subnet"} {
		id := strings.ToLower(text(object(props, key), "id"))
		if id == s.self.key() || strings.HasPrefix(id, s.self.key()+"/") {
			return true
		}
	}
	return false
}
