// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

var onlyPrivateLinks = []Scope{ScopePrivateLinkService}

// linkCodes is the source of error codes without a recording.
const linkCodes = "public code and notes that quote the answer"

// limitsPage is the source of Azure's limits.
const limitsPage = "subscription and service limits page"

const (
	maxLinkAddresses = 8
	maxLinks         = 8
	linkPolicies     = "privateLinkServiceNetworkPolicies"
	byAddressCode    = "PrivateLinkServiceIsNotSupportedForIPBasedLoadBalancer"
)

func privateLinkRules() []Rule {
	return []Rule{
		{
			Name: "private-link-frontends-exist", On: KindPut, Scopes: onlyPrivateLinks, Code: "InvalidResourceReference", CodeTag: Observed, Tag: Assumed,
			Requires: "A private link service names at least one frontend, and each that it names exists.",
			Source:   "by analogy with other references", check: linkFrontendsExist,
		},
		{
			Name: "private-link-standard", On: KindPut, Scopes: onlyPrivateLinks, Code: "PrivateLinkServiceIsNotSupportedForBasicLoadBalancer", CodeTag: Assumed, Tag: Documented,
			Requires: "The load balancer of a private link service is a Standard one.",
			Source:   "private link service page, limitations", check: linkStandard,
		},
		{
			Name: "private-link-ipv4", On: KindPut, Scopes: onlyPrivateLinks, Code: "PrivateLinkServiceIsNotSupportedForIPv6LoadBalancer", CodeTag: Assumed, Tag: Documented,
			Requires: "No frontend of the load balancer of a private link service is of IPv6.",
			Source:   "cloud-provider-azure's page on private link services, restrictions", check: linkIPv4,
		},
		{
			Name: "private-link-no-address-pools", On: KindPut, Scopes: onlyPrivateLinks, Code: byAddressCode, CodeTag: Observed, Tag: Documented,
			Requires: "No pool of the load balancer of a private link service has addresses by IP.",
			Source:   linkCodes, check: linkNoAddresses,
		},
		{
			Name: "pool-behind-private-link", On: KindPut, Scopes: onlyPools, Code: byAddressCode, CodeTag: Assumed, Tag: Assumed,
			Requires: "A pool of a load balancer with a private link service gets no addresses by IP.",
			Source:   "the same limit, the other way round", check: poolBehindLink,
		},
		{
			Name: "private-link-addresses", On: KindPut, Scopes: onlyPrivateLinks, Code: "PrivateLinkServiceIpConfigurationCountOutOfRange", CodeTag: Assumed, Tag: Documented,
			Requires: "A private link service has 1 to 8 IP configurations.",
			Source:   limitsPage, check: linkAddresses,
		},
		{
			Name: "private-link-limit", On: KindPut, Scopes: onlyPrivateLinks, Code: "PrivateLinkServicesPerLoadBalancerLimitReached", CodeTag: Assumed, Tag: Documented,
			Requires: "A load balancer has at most 8 private link services.",
			Source:   limitsPage, check: linkLimit,
		},
		{
			Name: "private-link-subnet-policies", On: KindPut, Scopes: onlyPrivateLinks, Code: "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled", CodeTag: Observed, Tag: Documented,
			Requires: "`privateLinkServiceNetworkPolicies` of the subnets of a private link service is Disabled; none at all is Enabled.",
			Source:   linkCodes, check: linkSubnetsOpen,
		},
		{
			Name: "subnet-policies-stay-off", On: KindPut, Scopes: []Scope{ScopeSubnet}, Code: "PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet", CodeTag: Observed, Tag: Documented,
			Requires: "`privateLinkServiceNetworkPolicies` of a subnet stays Disabled while a private link service is in it.",
			Source:   linkCodes, check: subnetStaysOpen,
		},
		{
			Name: "private-link-approval-visible", On: KindPut, Scopes: onlyPrivateLinks, Code: "PrivateLinkServiceAutoApprovalNotSubsetOfVisibility", CodeTag: Assumed, Tag: Documented,
			Requires: "The subscriptions of `autoApproval` are among those of `visibility`.",
			Source:   "private link service page, control service access", check: approvalVisible,
		},
		{
			Name: "connection-exists", On: KindPut, Scopes: []Scope{ScopeConnection}, Code: "PrivateEndpointConnectionCannotBeCreated", CodeTag: Assumed, Tag: Assumed,
			Requires: "A connection that is put was asked for by a private endpoint before.",
			Source:   "none found", check: connectionExists,
		},
		{
			Name: "connection-state", On: KindPut, Scopes: []Scope{ScopeConnection}, Code: "PrivateEndpointConnectionStateInvalid", CodeTag: Assumed, Tag: Assumed,
			Requires: "`status` of a connection is put to Approved or Rejected.",
			Source:   "none found", check: connectionState,
		},
	}
}

// privateLinkStays returns the rules that protect private link services and the frontends they use.
func privateLinkStays() []Rule {
	return []Rule{
		{
			Name: "published-frontends-stay", On: KindPut, Scopes: onlyLoadBalancers, Code: "InUseFrontendIPConfigurationCannotBeDeleted", CodeTag: Assumed, Tag: Assumed,
			Requires: "A PUT leaves out no frontend that a private link service publishes.",
			Source:   "by analogy with subnets", check: publishedStay,
		},
		{
			Name: "load-balancer-without-private-link", On: KindDelete, Scopes: onlyLoadBalancers, Code: "LoadBalancerInUseByPrivateLinkService", CodeTag: Assumed, Tag: Assumed,
			Requires: "No private link service publishes a frontend of the load balancer.",
			Source:   "by analogy with scale sets", check: balancerUnpublished,
		},
		{
			Name: "private-link-without-connections", On: KindDelete, Scopes: onlyPrivateLinks, Code: "PrivateLinkServiceInUseByPrivateEndpoints", CodeTag: Assumed, Tag: Documented,
			Requires: "A private link service has no connections, whatever their state.",
			Source:   "private link service page", check: linkUnconnected,
		},
	}
}

// eachFrontend calls f with every frontend of a private link service until it returns a violation.
func (s *subject) eachFrontend(f func(id string, balancer *aggregate, frontend fields) string) string {
	for _, ref := range objects(properties(s.body), publishedFrontends) {
		balancer, frontend := s.e.frontendOf(strings.ToLower(text(ref, "id")))
		if wrong := f(text(ref, "id"), balancer, frontend); wrong != "" {
			return wrong
		}
	}
	return ""
}

func linkFrontendsExist(s *subject) string {
	if len(objects(properties(s.body), publishedFrontends)) == 0 {
		return fmt.Sprintf("Private link service %s must reference a load balancer frontend IP configuration.", s.self)
	}
	return s.eachFrontend(func(id string, balancer *aggregate, _ fields) string {
		if balancer == nil {
			return dangling(id, s.self.String())
		}
		return ""
	})
}

func linkStandard(s *subject) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		if !sameName(sku(balancer.body), "Standard") {
			return fmt.Sprintf("Private link service %s cannot reference %s sku load balancer %s.", s.self, sku(balancer.body), balancer.id)
		}
		return ""
	})
}

func linkIPv4(s *subject) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		for _, f := range objects(properties(balancer.body), frontends) {
			pip := s.e.aggregates[reference(properties(f), "publicIPAddress")]
			if versionOf(properties(f)) == 1 || pip != nil && family(text(properties(pip.body), "publicIPAddressVersion")) == 1 {
				return fmt.Sprintf("Private link service %s cannot reference load balancer %s, whose frontend %s is of IPv6.", s.self, balancer.id, text(f, "name"))
			}
		}
		return ""
	})
}

func linkNoAddresses(s *subject) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		for _, pool := range objects(properties(balancer.body), pools) {
			if slices.ContainsFunc(objects(properties(pool), addresses), func(a fields) bool { return !isNIC(a) }) {
				return fmt.Sprintf("Private link service %s is not supported for load balancer %s with backend addresses set by IP: pool %s.", s.self, balancer.id, text(pool, "name"))
			}
		}
		return ""
	})
}

func poolBehindLink(s *subject) string {
	if !slices.ContainsFunc(s.addresses(), func(a fields) bool { return !isNIC(a) }) {
		return ""
	}
	if by := s.links(); len(by) > 0 {
		return fmt.Sprintf("Backend pool %s cannot have addresses set by IP: private link service %s references its load balancer.", s.self, by[0])
	}
	return ""
}

// links returns the private link services of the subject's load balancer.
func (s *subject) links() []string {
	var all []string
	for key, ids := range s.e.index().published {
		if strings.HasPrefix(key, s.self.rootKey()+inFrontends) {
			all = append(all, ids...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func linkAddresses(s *subject) string {
	if n := len(objects(properties(s.body), linkConfigKind.collection)); n < 1 || n > maxLinkAddresses {
		return fmt.Sprintf("Private link service %s has %d IP configurations; it must have 1 to %d.", s.self, n, maxLinkAddresses)
	}
	return ""
}

func linkLimit(s *subject) string {
	return s.eachFrontend(func(_ string, balancer *aggregate, _ fields) string {
		there := others((&subject{proposal: s.proposal, self: balancer.id}).links(), s.self)
		if most := cmp.Or(s.e.opts.MostPrivateLinks, maxLinks); len(there) >= most {
			return fmt.Sprintf("Load balancer %s has %d private link services; the limit is %d.", balancer.id, len(there), most)
		}
		return ""
	})
}

func closed(subnet fields) bool { return !sameName(text(properties(subnet), linkPolicies), "Disabled") }

func linkSubnetsOpen(s *subject) string {
	for _, props := range s.configsOf {
		id, err := parseID(reference(props, "subnet"))
		if err != nil {
			continue // checked by another rule
		}
		if agg := s.e.aggregates[id.rootKey()]; agg != nil && closed(findChild(agg.body, id)) {
			return fmt.Sprintf("Private link service %s cannot be created in subnet %s since it has private link service network policies enabled.", s.self, text(object(props, "subnet"), "id"))
		}
	}
	return ""
}

func subnetStaysOpen(s *subject) string {
	for _, by := range s.e.index().subnet[s.self.key()] {
		if strings.Contains(by, "/"+privateLinkServiceKind.collection+"/") && closed(s.body) {
			return fmt.Sprintf("Private link service network policies cannot be enabled on subnet %s since it is used by %s.", s.self, by)
		}
	}
	return ""
}

func approvalVisible(s *subject) string {
	approved, _ := object(properties(s.body), "autoApproval")["subscriptions"].([]any)
	for _, v := range approved {
		if id, _ := v.(string); !subscriptions(s.body, "visibility", id) {
			return fmt.Sprintf("Subscription %s of autoApproval of private link service %s is not in its visibility.", id, s.self)
		}
	}
	return ""
}

func connectionExists(s *subject) string {
	if findChild(s.before, s.self) == nil {
		return fmt.Sprintf("Private endpoint connection %s cannot be created: a private endpoint asks for it.", s.self)
	}
	return ""
}

func connectionState(s *subject) string {
	status := text(object(properties(s.body), "privateLinkServiceConnectionState"), "status")
	if s.id.child == nil || sameName(status, "Approved") || sameName(status, "Rejected") {
		return "" // a write of the service does not change it
	}
	return fmt.Sprintf("Private endpoint connection %s cannot be set to status %q.", s.self, status)
}

func publishedStay(s *subject) string {
	list := objects(properties(s.body), frontends)
	for key, ids := range s.e.index().published {
		balancer, name, _ := strings.Cut(key, inFrontends)
		if balancer == s.self.key() && indexByName(list, name) < 0 {
			return fmt.Sprintf("Frontend IP configuration %s is in use by private link service %s and cannot be deleted.", key, ids[0])
		}
	}
	return ""
}

func balancerUnpublished(s *subject) string {
	if by := s.links(); len(by) > 0 {
		return fmt.Sprintf("Load balancer %s is in use by private link service %s and cannot be deleted.", s.self, by[0])
	}
	return ""
}

func linkUnconnected(s *subject) string {
	if list := objects(properties(s.root), connections); len(list) > 0 {
		return fmt.Sprintf("Private link service %s has %d private endpoint connections and cannot be deleted: %s.", s.self, len(list), text(list[0], "name"))
	}
	return ""
}
