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
	loadBalancerScopes = []Scope{ScopeLoadBalancer}
	rootScopes         = []Scope{
		ScopeLoadBalancer, ScopeVirtualNetwork, ScopePublicIP, ScopePublicIPPrefix, ScopeNetworkInterface,
		ScopeSecurityGroup, ScopePrivateLinkService, ScopeVirtualMachine, ScopeScaleSet,
	}
	parentScopes = []Scope{ScopeLoadBalancer, ScopeVirtualNetwork, ScopeNetworkInterface, ScopeSecurityGroup, ScopePrivateLinkService}
)

// lbLimits are by SKU.
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
			Code: "InvalidResourceName", CodeCertainty: Observed, Certainty: Documented,
			Requires: "A name has 1 to 80 letters, digits, underscores, periods and hyphens, begins with a letter or digit and ends with a letter, digit or underscore.",
			Source:   "naming rules for Azure resources, Microsoft.Network", check: checkName,
		},
		{
			Name: "location", On: KindPut, Scopes: rootScopes, Code: "LocationRequired", CodeCertainty: Observed, Certainty: Observed,
			Requires: "`location` is present.", Source: "public issues", check: hasLocation,
		},
		{
			Name: "child-names", On: KindPut, Scopes: parentScopes, Code: "InvalidRequestFormat", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "Every child has a name.", Source: "none found", check: checkChildNames,
		},
		{
			Name: "child-names-unique", On: KindPut, Scopes: parentScopes, Code: "DuplicateResourceName", CodeCertainty: Observed, Certainty: Assumed,
			Requires: "No two children of one collection have the same name; case does not matter.",
			Source:   "by analogy with the addresses of a pool", check: uniqueChildNames,
		},
	}
}

func loadBalancerRules() []Rule {
	return []Rule{
		{
			Name: "sku-fixed", On: KindPut, Scopes: loadBalancerScopes, Code: "SkuCannotBeChangedOnUpdate", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "The SKU of an existing load balancer does not change; no SKU means Basic.",
			Source:   "upgrade guidance from Basic to Standard; code by analogy with public IP addresses, Azure/azure-cli#6743", check: checkSKUChange,
		},
		{
			Name: "mode-fixed", On: KindPut, Scopes: loadBalancerScopes, Code: "PropertyChangeNotAllowed", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "The mode of an existing load balancer does not change.",
			Source:   "API description of 2025-09-01", check: checkModeChange,
		},
		{
			Name: "children-need-frontend", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancerWithoutFrontendIPCantHaveChildResources", CodeCertainty: Documented, Certainty: Documented,
			Requires: "A load balancer without frontends has no pools, rules or probes. A PUT of a pool alone is not checked.",
			Source:   "load balancer errors page; hashicorp/terraform-provider-azurerm#774", check: requireFrontend,
		},
		{
			Name: "rule-limit", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancerRuleLimitReached", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "At most 1,500 load balancing rules (Standard) or 250 (Basic).",
			Source:   "Azure subscription limits", check: ruleLimit,
		},
		{
			Name: "frontend-limit", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancerFrontendIPConfigurationCountLimitReached", CodeCertainty: Observed, Certainty: Documented,
			Requires: "At most 600 frontend IP configurations (Standard) or 200 (Basic).",
			Source:   "Azure subscription limits; code from Azure/acs-engine#447", check: frontendLimit,
		},
		{
			Name: "load-balancer-limit", On: KindPut, Scopes: loadBalancerScopes, Code: "LoadBalancerCountLimitReached", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "At most 1,000 load balancers in a subscription and region.",
			Source:   "Azure subscription limits", check: loadBalancerLimit,
		},
		{
			Name: "references-exist", On: KindPut, Scopes: loadBalancerScopes, Code: "InvalidResourceReference", CodeCertainty: Observed, Certainty: Observed,
			Requires: "What a rule names (frontend, pool, probe) is in the same body; so a PUT cannot drop a pool or a frontend that a load balancing, outbound or NAT rule uses.",
			Source:   "pulumi/pulumi-azure-native#3601", check: referencesExist,
		},
	}
}

func deleteRules() []Rule {
	return []Rule{
		{
			Name: "pool-not-in-use", On: KindDelete, Scopes: poolScopes, Code: "InUseBackendAddressPoolCannotBeDeleted", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "No rule of the load balancer uses the pool, no NIC is in it, and no scale set names it.",
			Source:   "by analogy with subnets", check: checkPoolInUse,
		},
		{
			Name: "nic-pools-stay", On: KindPut, Scopes: loadBalancerScopes, Code: "InUseBackendAddressPoolCannotBeDeleted", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "A PUT leaves out no pool that a NIC is in, or that a scale set names.",
			Source:   "by analogy with subnets", check: checkRemovedPools,
		},
		{
			Name: "load-balancer-without-scale-set", On: KindDelete, Scopes: loadBalancerScopes, Code: "LoadBalancerInUseByVirtualMachineScaleSet", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No scale set names a pool of the load balancer, and no machine of one is in it.",
			Source:   "kubernetes-sigs/cluster-api-provider-azure#3163", check: checkScaleSetUse,
		},
		{
			Name: "subnets-in-use-stay", On: KindPut, Scopes: []Scope{ScopeVirtualNetwork}, Code: "InUseSubnetCannotBeDeleted", CodeCertainty: Observed, Certainty: Documented,
			Requires: "A PUT leaves out no subnet that is in use.",
			Source:   "common deployment errors page", check: checkRemovedSubnets,
		},
		{
			Name: "subnet-not-in-use", On: KindDelete, Scopes: []Scope{ScopeSubnet}, Code: "InUseSubnetCannotBeDeleted", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No pool, no frontend and no NIC refers to the subnet.",
			Source:   "azure-cli recordings", check: checkNetworkInUse,
		},
		{
			Name: "network-not-in-use", On: KindDelete, Scopes: []Scope{ScopeVirtualNetwork}, Code: "InUseSubnetCannotBeDeleted", CodeCertainty: Observed, Certainty: Observed,
			Requires: "No frontend, no NIC and (assumed) no pool refers to the virtual network or one of its subnets.",
			Source:   "azure-cli recordings", check: checkNetworkInUse,
		},
	}
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_.-]{0,78}[A-Za-z0-9_])?$`)

func checkName(s *validationTarget) string {
	if !namePattern.MatchString(s.self.leafName()) {
		return fmt.Sprintf("Resource name %q is invalid. The name can be up to 80 characters long. It must begin with a word character, and it must end with a word character or with '_'. The name may contain word characters or '.', '-', '_'.", s.self.leafName())
	}
	return ""
}

func hasLocation(s *validationTarget) string {
	if stringField(s.body, "location") == "" {
		return "The location property is required for this definition."
	}
	return ""
}

func (v *validationTarget) eachCollection(f func(collection string, list []fields) string) string {
	for _, k := range v.self.root.children {
		if wrong := f(k.collection, objectList(propertyFields(v.body), k.collection)); wrong != "" {
			return wrong
		}
	}
	return ""
}

func checkChildNames(s *validationTarget) string {
	return s.eachCollection(func(collection string, list []fields) string {
		if i := indexByName(list, ""); i >= 0 {
			return fmt.Sprintf("Resource %s: %s[%d] has no name.", s.self, collection, i)
		}
		return ""
	})
}

func uniqueChildNames(s *validationTarget) string {
	return s.eachCollection(func(collection string, list []fields) string {
		seen := map[string]bool{}
		for _, c := range list {
			name := strings.ToLower(stringField(c, "name"))
			if seen[name] {
				return fmt.Sprintf("Resource %s has two child resources with the same name (%s) in %s.", s.self, stringField(c, "name"), collection)
			}
			seen[name] = true
		}
		return ""
	})
}

func checkSKUChange(s *validationTarget) string {
	if s.before != nil && !sameName(skuName(s.before), skuName(s.body)) {
		return fmt.Sprintf("The SKU of load balancer %s cannot change from %s to %s.", s.self, skuName(s.before), skuName(s.body))
	}
	return ""
}

func checkModeChange(s *validationTarget) string {
	before, got := stringField(propertyFields(s.before), "mode"), stringField(propertyFields(s.body), "mode")
	if s.before != nil && !sameName(before, got) {
		return fmt.Sprintf("Changing property 'mode' of resource %s from %q to %q is not allowed.", s.self, before, got)
	}
	return ""
}

func requireFrontend(s *validationTarget) string {
	if len(objectList(propertyFields(s.body), frontends)) > 0 {
		return ""
	}
	return s.eachCollection(func(collection string, list []fields) string {
		if len(list) == 0 {
			return ""
		}
		return fmt.Sprintf("Load Balancer %s does not have Frontend IP Configuration, but it has other child resources.", s.self)
	})
}

func ruleLimit(s *validationTarget) string {
	n := len(objectList(propertyFields(s.body), lbRules))
	if limit, ok := lbLimits[strings.ToLower(skuName(s.body))]; ok && n > limit.rules {
		return fmt.Sprintf("Load balancer %s has %d load balancing rules; the limit of SKU %s is %d.", s.self, n, skuName(s.body), limit.rules)
	}
	return ""
}

func frontendLimit(s *validationTarget) string {
	n := len(objectList(propertyFields(s.body), frontends))
	if limit, ok := lbLimits[strings.ToLower(skuName(s.body))]; ok && n > limit.frontends {
		return fmt.Sprintf("Load balancer %s has %d frontend IP configurations; the limit of SKU %s is %d.", s.self, n, skuName(s.body), limit.frontends)
	}
	return ""
}

func loadBalancerLimit(s *validationTarget) string {
	if s.before != nil {
		return ""
	}
	n := s.countInRegion(loadBalancerKind)
	if n >= maxLoadBalancers {
		return fmt.Sprintf("Subscription %s has %d load balancers in %s; the limit is %d.", s.self.subscription, n, stringField(s.body, "location"), maxLoadBalancers)
	}
	return ""
}

func referencesExist(s *validationTarget) string {
	own := s.self.key() + "/"
	have := map[string]bool{}
	_ = s.eachCollection(func(collection string, list []fields) string {
		for _, c := range list {
			have[own+strings.ToLower(collection+"/"+stringField(c, "name"))] = true
		}
		return ""
	})
	return s.eachCollection(func(collection string, list []fields) string {
		for _, c := range list {
			for _, id := range slices.Sorted(maps.Keys(referencedIDs(c))) {
				if !have[id] {
					return missingReference(id, s.self.String()+"/"+collection+"/"+stringField(c, "name"))
				}
			}
		}
		return ""
	})
}

func checkPoolInUse(s *validationTarget) string {
	for _, collection := range []string{lbRules, outRules, natRules} {
		for _, rule := range objectList(propertyFields(s.root), collection) {
			if referencedIDs(rule)[s.self.key()] {
				return fmt.Sprintf("Backend address pool %s is in use by %s/%s/%s and cannot be deleted.", s.self, s.self.rootID(), collection, stringField(rule, "name"))
			}
		}
	}
	return findNICUser(s, s.self)
}

func findNICUser(s *validationTarget, pool resourceID) string {
	if set := s.findScaleSet(pool); set != "" {
		return fmt.Sprintf("Cannot remove backend address pool %s from load balancer since it is in use by virtual machine scale set %s.", pool.childName, set)
	}
	if by := s.e.references().pool[pool.key()]; len(by) > 0 {
		return fmt.Sprintf("Backend address pool %s is in use by %s and cannot be deleted.", pool, by[0])
	}
	return ""
}

func (v *validationTarget) eachRemovedChild(k *childKind, f func(*validationTarget, resourceID) string) string {
	remaining := newNameIndex(objectList(propertyFields(v.body), k.collection))
	for _, c := range objectList(propertyFields(v.before), k.collection) {
		if _, found := lookUpName(remaining, stringField(c, "name")); found && v.on == KindPut {
			continue
		}
		if wrong := f(v, v.self.withChild(k, stringField(c, "name"))); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (v *validationTarget) findScaleSet(pool resourceID) string {
	if sets := v.e.references().model[pool.key()]; len(sets) > 0 {
		return sets[0]
	}
	for _, by := range v.e.references().pool[pool.key()] {
		set, _, inSet := strings.Cut(by, "/virtualMachines/")
		if inSet && strings.Contains(by, "/virtualMachineScaleSets/") {
			return set
		}
	}
	return ""
}

func checkScaleSetUse(s *validationTarget) string {
	return s.eachRemovedChild(poolKind, func(s *validationTarget, pool resourceID) string {
		set := s.findScaleSet(pool)
		if set == "" {
			return ""
		}
		return fmt.Sprintf("Cannot delete load balancer %s since its child resources %s are in use by virtual machine scale set %s.", s.self, pool.childName, set)
	})
}

func checkRemovedPools(s *validationTarget) string { return s.eachRemovedChild(poolKind, findNICUser) }

func checkRemovedSubnets(s *validationTarget) string {
	return s.eachRemovedChild(subnetKind, func(s *validationTarget, id resourceID) string {
		return checkNetworkInUse(&validationTarget{proposal: s.proposal, self: id, scope: ScopeSubnet})
	})
}
