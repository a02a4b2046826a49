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
	onlyRoots         = []Scope{
		ScopeLoadBalancer, ScopeVirtualNetwork, ScopePublicIP, ScopePublicIPPrefix, ScopeNetworkInterface,
		ScopeSecurityGroup, ScopePrivateLinkService, ScopeVirtualMachine, ScopeScaleSet,
	}
	onlyParents = []Scope{ScopeLoadBalancer, ScopeVirtualNetwork, ScopeNetworkInterface, ScopeSecurityGroup, ScopePrivateLinkService}
)

// lbLimits are the limits of a load balancer by SKU.
var lbLimits = map[string]struct{ rules, frontends int }{
	"basic":    {250, 200},
	"standard": {1500, 600},
}

const maxLoadBalancers = 1000

func nameRules() []Rule {
	return []Rule{
		{
			Name: "resource-name", On: KindPut, Scopes: []Scope{
				ScopeLoadBalancer, ScopePool, ScopeVirtualNetwork, ScopeSubnet, ScopePublicIP, ScopePublicIPPrefix, ScopeNetworkInterface, ScopePrivateLinkService,
			},
			Code: "InvalidResourceName", CodeTag: Observed, Tag: Documented,
			Requires: "A name has 1 to 80 letters, digits, underscores, periods and hyphens, begins with a letter or digit and ends with a letter, digit or underscore.",
			Source:   "naming rules for Azure resources, Microsoft.Network", check: validName,
		},
		{
			Name: "location", On: KindPut, Scopes: onlyRoots, Code: "LocationRequired", CodeTag: Observed, Tag: Observed,
			Requires: "`location` is present.", Source: "error bodies in public issues", check: hasLocation,
		},
		{
			Name: "child-names", On: KindPut, Scopes: onlyParents, Code: "InvalidRequestFormat", CodeTag: Assumed, Tag: Assumed,
			Requires: "Every child has a name.", Source: "none found", check: childrenNamed,
		},
		{
			Name: "child-names-unique", On: KindPut, Scopes: onlyParents, Code: "DuplicateResourceName", CodeTag: Observed, Tag: Assumed,
			Requires: "No two children of one collection have the same name; case does not matter.",
			Source:   "by analogy with the addresses of a pool", check: uniqueChildNames,
		},
	}
}

func loadBalancerRules() []Rule {
	return []Rule{
		{
			Name: "sku-fixed", On: KindPut, Scopes: onlyLoadBalancers, Code: "SkuCannotBeChangedOnUpdate", CodeTag: Assumed, Tag: Documented,
			Requires: "The SKU of an existing load balancer stays what it is; no SKU means Basic.",
			Source:   "upgrade guidance from Basic to Standard; code by analogy with public IP addresses, Azure/azure-cli#6743", check: skuFixed,
		},
		{
			Name: "mode-fixed", On: KindPut, Scopes: onlyLoadBalancers, Code: "PropertyChangeNotAllowed", CodeTag: Assumed, Tag: Documented,
			Requires: "The mode of an existing load balancer stays what it is.",
			Source:   "API description of 2025-09-01", check: modeFixed,
		},
		{
			Name: "children-need-frontend", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerWithoutFrontendIPCantHaveChildResources", CodeTag: Documented, Tag: Documented,
			Requires: "A load balancer without frontends has no pools, rules or probes. A PUT of a pool alone is not checked.",
			Source:   "common load balancer deployment errors page; hashicorp/terraform-provider-azurerm#774", check: childrenNeedFrontend,
		},
		{
			Name: "rule-limit", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerRuleLimitReached", CodeTag: Assumed, Tag: Documented,
			Requires: "At most 1,500 load balancing rules (Standard) or 250 (Basic).",
			Source:   "Azure subscription limits", check: ruleLimit,
		},
		{
			Name: "frontend-limit", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerFrontendIPConfigurationCountLimitReached", CodeTag: Observed, Tag: Documented,
			Requires: "At most 600 frontend IP configurations (Standard) or 200 (Basic).",
			Source:   "Azure subscription limits; code from Azure/acs-engine#447", check: frontendLimit,
		},
		{
			Name: "load-balancer-limit", On: KindPut, Scopes: onlyLoadBalancers, Code: "LoadBalancerCountLimitReached", CodeTag: Assumed, Tag: Documented,
			Requires: "At most 1,000 load balancers in a subscription and region.",
			Source:   "Azure subscription limits", check: loadBalancerLimit,
		},
		{
			Name: "references-exist", On: KindPut, Scopes: onlyLoadBalancers, Code: "InvalidResourceReference", CodeTag: Observed, Tag: Observed,
			Requires: "What a rule names (frontend, pool, probe) is in the same body; so a PUT cannot drop a pool or a frontend that a load balancing, outbound or NAT rule uses.",
			Source:   "pulumi/pulumi-azure-native#3601", check: referencesExist,
		},
	}
}

func deleteRules() []Rule {
	return []Rule{
		{
			Name: "pool-not-in-use", On: KindDelete, Scopes: onlyPools, Code: "InUseBackendAddressPoolCannotBeDeleted", CodeTag: Assumed, Tag: Assumed,
			Requires: "No rule of the load balancer uses the pool, no network interface is in it, and no scale set names it.",
			Source:   "by analogy with subnets", check: poolUnused,
		},
		{
			Name: "nic-pools-stay", On: KindPut, Scopes: onlyLoadBalancers, Code: "InUseBackendAddressPoolCannotBeDeleted", CodeTag: Assumed, Tag: Assumed,
			Requires: "A PUT leaves out no pool that a network interface is in, or that a scale set names.",
			Source:   "by analogy with subnets", check: nicPoolsStay,
		},
		{
			Name: "load-balancer-without-scale-set", On: KindDelete, Scopes: onlyLoadBalancers, Code: "LoadBalancerInUseByVirtualMachineScaleSet", CodeTag: Observed, Tag: Observed,
			Requires: "No scale set names a pool of the load balancer, and no machine of one is in it.",
			Source:   "kubernetes-sigs/cluster-api-provider-azure#3163", check: unusedByScaleSets,
		},
		{
			Name: "subnets-in-use-stay", On: KindPut, Scopes: []Scope{ScopeVirtualNetwork}, Code: "InUseSubnetCannotBeDeleted", CodeTag: Observed, Tag: Documented,
			Requires: "A PUT leaves out no subnet that is in use.",
			Source:   "common deployment errors page", check: subnetsStay,
		},
		{
			Name: "subnet-not-in-use", On: KindDelete, Scopes: []Scope{ScopeSubnet}, Code: "InUseSubnetCannotBeDeleted", CodeTag: Observed, Tag: Observed,
			Requires: "No pool, no frontend and no network interface refers to the subnet.",
			Source:   "recordings of Azure/azure-cli", check: networkUnused,
		},
		{
			Name: "network-not-in-use", On: KindDelete, Scopes: []Scope{ScopeVirtualNetwork}, Code: "InUseSubnetCannotBeDeleted", CodeTag: Observed, Tag: Observed,
			Requires: "No frontend, no network interface and (assumed) no pool refers to the virtual network or one of its subnets.",
			Source:   "recordings of Azure/azure-cli", check: networkUnused,
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

// children calls f for each collection of a root until it returns a violation.
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

func modeFixed(s *subject) string {
	was, is := text(properties(s.before), "mode"), text(properties(s.body), "mode")
	if s.before != nil && !sameName(was, is) {
		return fmt.Sprintf("Changing property 'mode' of resource %s from %q to %q is not allowed.", s.self, was, is)
	}
	return ""
}

func childrenNeedFrontend(s *subject) string {
	if len(objects(properties(s.body), frontends)) > 0 {
		return ""
	}
	return s.children(func(collection string, list []fields) string {
		if len(list) == 0 {
			return ""
		}
		return fmt.Sprintf("Load Balancer %s does not have Frontend IP Configuration, but it has other child resources.", s.self)
	})
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
	n := s.countInRegion(loadBalancerKind)
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
				if !have[id] {
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
	return nicUser(s, s.self)
}

func nicUser(s *subject, pool resourceID) string {
	if set := s.scaleSetOf(pool); set != "" {
		return fmt.Sprintf("Cannot remove backend address pool %s from load balancer since it is in use by virtual machine scale set %s.", pool.childName, set)
	}
	if by := s.e.index().pool[pool.key()]; len(by) > 0 {
		return fmt.Sprintf("Backend address pool %s is in use by %s and cannot be deleted.", pool, by[0])
	}
	return ""
}

// dropped calls f with every existing child that the body omits, until f returns a violation.
func (s *subject) dropped(k *childKind, f func(*subject, resourceID) string) string {
	left := objects(properties(s.body), k.collection)
	for _, c := range objects(properties(s.before), k.collection) {
		if s.on == KindPut && indexByName(left, text(c, "name")) >= 0 {
			continue
		}
		if wrong := f(s, s.self.withChild(k, text(c, "name"))); wrong != "" {
			return wrong
		}
	}
	return ""
}

// scaleSetOf returns a scale set whose model or instance uses the pool.
func (s *subject) scaleSetOf(pool resourceID) string {
	if sets := s.e.index().model[pool.key()]; len(sets) > 0 {
		return sets[0]
	}
	for _, by := range s.e.index().pool[pool.key()] {
		set, _, inSet := strings.Cut(by, "/virtualMachines/")
		if inSet && strings.Contains(by, "/virtualMachineScaleSets/") {
			return set
		}
	}
	return ""
}

func unusedByScaleSets(s *subject) string {
	return s.dropped(poolKind, func(s *subject, pool resourceID) string {
		set := s.scaleSetOf(pool)
		if set == "" {
			return ""
		}
		return fmt.Sprintf("Cannot delete load balancer %s since its child resources %s are in use by virtual machine scale set %s.", s.self, pool.childName, set)
	})
}

func nicPoolsStay(s *subject) string { return s.dropped(poolKind, nicUser) }

func subnetsStay(s *subject) string {
	return s.dropped(subnetKind, func(s *subject, id resourceID) string {
		return networkUnused(&subject{proposal: s.proposal, self: id, scope: ScopeSubnet})
	})
}
