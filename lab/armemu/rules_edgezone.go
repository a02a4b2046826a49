// SPDX-License-Identifier: Apache-2.0

package armemu

import "fmt"

// edgeZoneRules are those of extendedLocation.
func edgeZoneRules() []Rule {
	located := []Scope{ScopeLoadBalancer, ScopePublicIP, ScopePublicIPPrefix, ScopePrivateLinkService}
	return []Rule{
		{
			Name: "edge-zone-fixed", On: KindPut, Scopes: located, Code: "InvalidExtendedLocation", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The extended location of a resource is fixed.",
			Source:   "Azure/azure-cli#20078", check: checkEdgeZoneChange,
		},
		{
			Name: "edge-zone-without-zones", On: KindPut, Scopes: located[:3], Code: "AvailabilityZonesNotSupportedInExtendedLocation", CodeCertainty: Assumed, Certainty: Observed,
			Requires: "An edge zone has no availability zones.",
			Source:   "kubernetes-sigs/cloud-provider-azure#702", check: checkEdgeZoneZones,
		},
		{
			Name: "edge-zone-standard", On: KindPut, Scopes: located[:3], Code: "BasicSkuNotSupportedInExtendedLocation", CodeCertainty: Assumed, Certainty: Observed,
			Requires: "It is Standard in an edge zone.",
			Source:   "Azure/azure-cli#18905", check: checkEdgeZoneSKU,
		},
		{
			Name: "edge-zone-references", On: KindPut, Scopes: []Scope{ScopeLoadBalancer, ScopePrivateLinkService}, Code: "ResourceMayNotReferenceCrossLocationResource", CodeCertainty: Observed, Certainty: Assumed,
			Requires: "A load balancer, its public IPs and its private link services have one extended location.",
			Source:   "Azure/azure-powershell#18951", check: checkEdgeZoneReferences,
		},
	}
}

func edgeZone(body fields) string { return stringField(objectField(body, "extendedLocation"), "name") }

func checkEdgeZoneChange(s *validationTarget) string {
	if s.before == nil || sameName(edgeZone(s.before), edgeZone(s.body)) {
		return ""
	}
	return fmt.Sprintf("The resource '%s' already exists in extended location '%s' of location '%s'. A resource with the same name cannot be created in extended location '%s'.",
		s.self.name, edgeZone(s.before), stringField(s.before, "location"), edgeZone(s.body))
}

func checkEdgeZoneZones(s *validationTarget) string {
	if edgeZone(s.body) == "" {
		return ""
	}
	for _, part := range append([]fields{s.body}, objectList(propertyFields(s.body), frontends)...) {
		if len(sortedValues(part["zones"])) > 0 {
			return fmt.Sprintf("Resource %s in extended location %s cannot have availability zones.", s.self, edgeZone(s.body))
		}
	}
	return ""
}

func checkEdgeZoneSKU(s *validationTarget) string {
	if edgeZone(s.body) == "" || sameName(skuName(s.body), "Standard") {
		return ""
	}
	return fmt.Sprintf("Resource %s in extended location %s must be of sku Standard.", s.self, edgeZone(s.body))
}

func checkEdgeZoneReferences(s *validationTarget) string {
	mismatch := func(id string, body fields) string {
		if sameName(edgeZone(body), edgeZone(s.body)) {
			return ""
		}
		return fmt.Sprintf("Resource %s referenced by resource %s is in extended location '%s', and not in '%s'.", id, s.self, edgeZone(body), edgeZone(s.body))
	}
	for _, f := range objectList(propertyFields(s.body), frontends) {
		if agg := s.e.aggregates[referenceID(propertyFields(f), "publicIPAddress")]; agg != nil {
			if wrong := mismatch(agg.id.String(), agg.body); wrong != "" {
				return wrong
			}
		}
	}
	return s.eachFrontend(func(id string, balancer *aggregate, _ fields) string {
		if balancer == nil {
			return ""
		}
		return mismatch(id, balancer.body)
	})
}
