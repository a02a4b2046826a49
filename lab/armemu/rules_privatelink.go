// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

var privateLinkScopes = []Scope{ScopePrivateLinkService}

const linkCodes = "public code and notes"

const limitsPage = "subscription and service limits page"

const (
	maxLinkAddresses = 8
	maxLinks         = 8
	linkPolicies     = "privateLinkServiceNetworkPolicies"
	ipPoolCode       = "PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer"
)

func privateLinkRules() []Rule {
	return []Rule{
		{
			Name: "private-link-frontends-exist", On: KindPut, Scopes: privateLinkScopes, Code: "InvalidResourceReference", CodeCertainty: Observed, Certainty: Assumed,
			Requires: "A private link service names at least one frontend, and each that it names exists.",
			Source:   "by analogy with other references", check: checkLinkFrontends,
		},
		{
			Name: "private-link-standard", On: KindPut, Scopes: privateLinkScopes, Code: "PrivateLinkServiceIsNotSupportedForBasicLoadBalancer", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "The load balancer of a private link service is a Standard one.",
			Source:   "private link service page, limitations", check: checkLinkSKU,
		},
		{
			Name: "private-link-ipv4", On: KindPut, Scopes: privateLinkScopes, Code: "PrivateLinkServiceIsNotSupportedForIPv6LoadBalancer", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "No frontend of the load balancer of a private link service is of IPv6.",
			Source:   "cloud-provider-azure's page on private link services, restrictions", check: checkLinkIPv4,
		},
		{
			Name: "private-link-no-address-pools", On: KindPut, Scopes: privateLinkScopes, Code: ipPoolCode, CodeCertainty: Observed, Certainty: Documented,
			Requires: "No pool of the load balancer of a private link service has addresses by IP.",
			Source:   linkCodes, check: checkLinkPools,
		},
		{
			Name: "pool-behind-private-link", On: KindPut, Scopes: poolScopes, Code: ipPoolCode, CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "A pool of a load balancer with a private link service gets no addresses by IP.",
			Source:   "the same limit, the other way round", check: checkPoolWithLink,
		},
		{
			Name: "private-link-addresses", On: KindPut, Scopes: privateLinkScopes, Code: "PrivateLinkServiceIpConfigurationCountOutOfRange", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A private link service has 1 to 8 IP configurations.",
			Source:   limitsPage, check: checkLinkIPConfigs,
		},
		{
			Name: "private-link-limit", On: KindPut, Scopes: privateLinkScopes, Code: "PrivateLinkServicesPerLoadBalancerLimitReached", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A load balancer has at most 8 private link services.",
			Source:   limitsPage, check: checkLinkLimit,
		},
		{
			Name: "private-link-subnet-policies", On: KindPut, Scopes: privateLinkScopes, Code: "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled", CodeCertainty: Observed, Certainty: Documented,
			Requires: "`privateLinkServiceNetworkPolicies` of the subnets of a private link service is Disabled; none at all is Enabled.",
			Source:   linkCodes, check: checkLinkSubnets,
		},
		{
			Name: "subnet-policies-stay-off", On: KindPut, Scopes: []Scope{ScopeSubnet}, Code: "PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet", CodeCertainty: Observed, Certainty: Documented,
			Requires: "`privateLinkServiceNetworkPolicies` of a subnet remains Disabled while a private link service is in it.",
			Source:   linkCodes, check: checkSubnetPolicies,
		},
		{
			Name: "private-link-approval-visible", On: KindPut, Scopes: privateLinkScopes, Code: "PrivateLinkServiceAutoApprovalNotSubsetOfVisibility", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "The subscriptions of `autoApproval` are among those of `visibility`.",
			Source:   "private link service page, control service access", check: checkAutoApproval,
		},
		{
			Name: "connection-exists", On: KindPut, Scopes: []Scope{ScopeConnection}, Code: "PrivateEndpointConnectionCannotBeCreated", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "A connection that is put was requested by a private endpoint before.",
			Source:   "none found", check: connectionExists,
		},
		{
			Name: "connection-state", On: KindPut, Scopes: []Scope{ScopeConnection}, Code: "PrivateEndpointConnectionStateInvalid", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "`status` of a connection is put to Approved or Rejected.",
			Source:   "none found", check: connectionState,
		},
	}
}

func privateLinkUseRules() []Rule {
	return []Rule{
		{
			Name: "published-frontends-stay", On: KindPut, Scopes: loadBalancerScopes, Code: "InUseFrontendIPConfigurationCannotBeDeleted", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "A PUT leaves out no frontend that a private link service publishes.",
			Source:   "by analogy with subnets", check: checkRemovedFrontends,
		},
		{
			Name: "load-balancer-without-private-link", On: KindDelete, Scopes: loadBalancerScopes, Code: "LoadBalancerInUseByPrivateLinkService", CodeCertainty: Assumed, Certainty: Assumed,
			Requires: "No private link service publishes a frontend of the load balancer.",
			Source:   "by analogy with scale sets", check: checkLinkReferences,
		},
		{
			Name: "private-link-without-connections", On: KindDelete, Scopes: privateLinkScopes, Code: "PrivateLinkServiceInUseByPrivateEndpoints", CodeCertainty: Assumed, Certainty: Documented,
			Requires: "A private link service has no connections, whatever their state.",
			Source:   "private link service page", check: checkLinkConnections,
		},
	}
}

func (v *validationTarget) eachFrontend(f func(id string, balancer *aggregate, frontend fields) string) string {
	for _, ref := range objectList(propertyFields(v.body), privateLinkFrontends) {
		balancer, frontend := v.e.findFrontend(strings.ToLower(stringField(ref, "id")))
		if wrong := f(stringField(ref, "id"), balancer, frontend); wrong != "" {
			return wrong
		}
	}
	return ""
}

func checkLinkFrontends(s *validationTarget) string {
	if len(objectList(propertyFields(s.body), privateLinkFrontends)) == 0 {
		return fmt.Sprintf("Private link service %s must reference a load balancer frontend IP configuration.", s.self)
	}
	return s.eachFrontend(func(id string, balancer *aggregate, _ fields) string {
		if balancer == nil {
			return missingReference(id, s.self.String())
		}
		return ""
	})
}

func checkLinkSKU(s *validationTarget) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		if !sameName(skuName(balancer.body), "Standard") {
			return fmt.Sprintf("Private link service %s cannot reference %s sku load balancer %s.", s.self, skuName(balancer.body), balancer.id)
		}
		return ""
	})
}

func checkLinkIPv4(s *validationTarget) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		for _, f := range objectList(propertyFields(balancer.body), frontends) {
			pip := s.e.aggregates[referenceID(propertyFields(f), "publicIPAddress")]
			if ipVersion(propertyFields(f)) == 1 || pip != nil && ipFamily(stringField(propertyFields(pip.body), "publicIPAddressVersion")) == 1 {
				return fmt.Sprintf("Private link service %s cannot reference load balancer %s, whose frontend %s is of IPv6.", s.self, balancer.id, stringField(f, "name"))
			}
		}
		return ""
	})
}

func checkLinkPools(s *validationTarget) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		for _, pool := range objectList(propertyFields(balancer.body), pools) {
			if slices.ContainsFunc(objectList(propertyFields(pool), addresses), func(a fields) bool { return !isNIC(a) }) {
				return fmt.Sprintf("Private link service %s is not supported for load balancer %s with backend addresses set by IP: pool %s.", s.self, balancer.id, stringField(pool, "name"))
			}
		}
		return ""
	})
}

func checkPoolWithLink(s *validationTarget) string {
	if !slices.ContainsFunc(s.addresses(), func(a fields) bool { return !isNIC(a) }) {
		return ""
	}
	if by := s.privateLinks(); len(by) > 0 {
		return fmt.Sprintf("Backend pool %s cannot have addresses set by IP: private link service %s references its load balancer.", s.self, by[0])
	}
	return ""
}

func (v *validationTarget) privateLinks() []string {
	var links []string
	for key, ids := range v.e.references().privateLinks {
		if strings.HasPrefix(key, v.self.rootKey()+frontendPathSegment) {
			links = append(links, ids...)
		}
	}
	slices.Sort(links)
	return slices.Compact(links)
}

func checkLinkIPConfigs(s *validationTarget) string {
	if n := len(objectList(propertyFields(s.body), linkConfigKind.collection)); n < 1 || n > maxLinkAddresses {
		return fmt.Sprintf("Private link service %s has %d IP configurations; it must have 1 to %d.", s.self, n, maxLinkAddresses)
	}
	return ""
}

func checkLinkLimit(s *validationTarget) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		there := excludeOwn((&validationTarget{proposal: s.proposal, self: balancer.id}).privateLinks(), s.self)
		if limit := cmp.Or(s.e.opts.MaxPrivateLinks, maxLinks); len(there) >= limit {
			return fmt.Sprintf("Load balancer %s has %d private link services; the limit is %d.", balancer.id, len(there), limit)
		}
		return ""
	})
}

func hasLinkPolicies(subnet fields) bool {
	return !sameName(stringField(propertyFields(subnet), linkPolicies), "Disabled")
}

func checkLinkSubnets(s *validationTarget) string {
	for _, props := range s.ipConfigs {
		id, err := parseID(referenceID(props, "subnet"))
		if err != nil {
			continue // checked by another rule
		}
		if agg := s.e.aggregates[id.rootKey()]; agg != nil && hasLinkPolicies(findChild(agg.body, id)) {
			return fmt.Sprintf("Private link service %s cannot be created in subnet %s since it has private link service network policies enabled.", s.self, stringField(objectField(props, "subnet"), "id"))
		}
	}
	return ""
}

func checkSubnetPolicies(s *validationTarget) string {
	for _, by := range s.e.references().subnet[s.self.key()] {
		if strings.Contains(by, "/"+privateLinkServiceKind.collection+"/") && hasLinkPolicies(s.body) {
			return fmt.Sprintf("Private link service network policies cannot be enabled on subnet %s since it is used by %s.", s.self, by)
		}
	}
	return ""
}

func checkAutoApproval(s *validationTarget) string {
	approved, _ := objectField(propertyFields(s.body), "autoApproval")["subscriptions"].([]any)
	for _, v := range approved {
		if id, _ := v.(string); !listsSubscription(s.body, "visibility", id) {
			return fmt.Sprintf("Subscription %s of autoApproval of private link service %s is not in its visibility.", id, s.self)
		}
	}
	return ""
}

func connectionExists(s *validationTarget) string {
	if findChild(s.before, s.self) == nil {
		return fmt.Sprintf("Private endpoint connection %s cannot be created: a private endpoint asks for it.", s.self)
	}
	return ""
}

func connectionState(s *validationTarget) string {
	status := stringField(objectField(propertyFields(s.body), "privateLinkServiceConnectionState"), "status")
	if s.id.child == nil || sameName(status, "Approved") || sameName(status, "Rejected") {
		return "" // a write of the service does not change it
	}
	return fmt.Sprintf("Private endpoint connection %s cannot be set to status %q.", s.self, status)
}

func checkRemovedFrontends(s *validationTarget) string {
	list := objectList(propertyFields(s.body), frontends)
	for key, ids := range s.e.references().privateLinks {
		balancer, name, _ := strings.Cut(key, frontendPathSegment)
		if balancer == s.self.key() && indexByName(list, name) < 0 {
			return fmt.Sprintf("Frontend IP configuration %s is in use by private link service %s and cannot be deleted.", key, ids[0])
		}
	}
	return ""
}

func checkLinkReferences(s *validationTarget) string {
	if by := s.privateLinks(); len(by) > 0 {
		return fmt.Sprintf("Load balancer %s is in use by private link service %s and cannot be deleted.", s.self, by[0])
	}
	return ""
}

func checkLinkConnections(s *validationTarget) string {
	if list := objectList(propertyFields(s.root), connections); len(list) > 0 {
		return fmt.Sprintf("Private link service %s has %d private endpoint connections and cannot be deleted: %s.", s.self, len(list), stringField(list[0], "name"))
	}
	return ""
}
