// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const locationsSegment = "locations"

// locationNames are listed even if nothing is there.
var locationNames = []string{"eastus", "westeurope", "westus"}

// serveLocations lists the locations with the zones of Options.Zones.
func (e *Emulator) serveLocations(x *exchange) *Problem {
	names := slices.Clone(locationNames)
	for _, agg := range e.aggregates {
		if at := strings.ToLower(strings.ReplaceAll(stringField(agg.body, "location"), " ", "")); at != "" && sameName(agg.id.subscription, x.route.subscription) {
			names = append(names, at)
		}
	}
	slices.Sort(names)
	values := []any{}
	for _, name := range slices.Compact(names) {
		location := fields{"id": "/subscriptions/" + x.route.subscription + "/locations/" + name, "name": name, "displayName": name, "type": "Region"}
		var mappings []any
		for i, zone := range e.opts.Zones { // the logical zones of a subscription are any of the physical ones
			mappings = append(mappings, fields{"logicalZone": zone, "physicalZone": fmt.Sprintf("%s-az%d", name, (i+1)%len(e.opts.Zones)+1)})
		}
		if mappings != nil {
			location["availabilityZoneMappings"] = mappings
		}
		values = append(values, location)
	}
	x.status, x.body = http.StatusOK, fields{"value": values}
	return nil
}

// zoneRules apply if Options.Zones is set.
func zoneRules() []Rule {
	const noZones, source = "LocationNotSupportAvailabilityZones", "aztfmod/terraform-azurerm-caf#1744"
	publicIPs := []Scope{ScopePublicIP, ScopePublicIPPrefix}
	return []Rule{
		{
			Name: "region-has-zones", On: KindPut, Scopes: publicIPs, Code: noZones, CodeCertainty: Observed, Certainty: Observed,
			Requires: "A public IP or prefix with zones is in a region that has zones.",
			Source:   source, check: checkRegionHasZones,
		},
		{
			Name: "zones-of-region", On: KindPut, Scopes: publicIPs, Code: "InvalidAvailabilityZone", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The zones of a public IP or prefix are zones of its region.",
			Source:   "hashicorp/terraform-provider-azurerm#6296", check: checkZonesOfRegion,
		},
		{
			Name: "frontend-zones-of-region", On: KindPut, Scopes: loadBalancerScopes, Code: "SubscriptionDoesNotSupportZone", CodeCertainty: Observed, Certainty: Observed,
			Requires: "The zones of a frontend are zones of its region.",
			Source:   "aztfmod/terraform-provider-azurecaf#217", check: checkFrontendZonesOfRegion,
		},
	}
}

func checkRegionHasZones(s *validationTarget) string {
	if s.e.opts.Zones == nil || len(s.e.opts.Zones) > 0 || len(sortedValues(s.body["zones"])) == 0 {
		return ""
	}
	return fmt.Sprintf("The resource '%s/%s' does not support availability zones at location '%s'.", s.self.typeName(), s.self.name, stringField(s.body, "location"))
}

func checkZonesOfRegion(s *validationTarget) string {
	wrong := s.e.unsupportedZones(s.body["zones"])
	if len(wrong) == 0 {
		return ""
	}
	return fmt.Sprintf("The zone(s) '%s' for resource '%s/%s' is not supported. The supported zones for location '%s' are '%s'",
		strings.Join(wrong, ","), s.self.typeName(), s.self.name, stringField(s.body, "location"), strings.Join(s.e.opts.Zones, ","))
}

func checkFrontendZonesOfRegion(s *validationTarget) string {
	for _, f := range objectList(propertyFields(s.body), frontends) {
		if wrong := s.e.unsupportedZones(f["zones"]); len(wrong) > 0 {
			return fmt.Sprintf("Cannot create/move resource %s which uses zone %s since subscription %s does not support zone %s in location %s.",
				s.self.withChild(frontendKind, stringField(f, "name")), wrong[0], s.self.subscription, wrong[0], stringField(s.body, "location"))
		}
	}
	return ""
}

// unsupportedZones returns the zones of a list that the region does not have.
func (e *Emulator) unsupportedZones(list any) []string {
	if e.opts.Zones == nil {
		return nil
	}
	var wrong []string
	zones, _ := list.([]any)
	for _, zone := range zones {
		if name := fmt.Sprint(zone); !slices.Contains(e.opts.Zones, name) {
			wrong = append(wrong, name)
		}
	}
	return wrong
}
