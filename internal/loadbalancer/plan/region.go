// SPDX-License-Identifier: Apache-2.0

package plan

import "strings"

// RegionUsage is the usage of a quota of the subscription in a region, as Azure reports it.
type RegionUsage struct {
	Name      string
	Used, Max int
}

// regionQuotas are the quotas of a region that Services use, by Azure's name in lower case. A quota of the subscription can
// be raised, so that only Azure knows it.
var regionQuotas = map[string]string{
	"loadbalancers": "load balancers", "standardskuloadbalancers": "Standard load balancers",
	"publicipaddresses": "public IPs", "ipv4standardskupublicipaddresses": "Standard public IPv4 addresses",
	"ipv6standardskupublicipaddresses": "Standard public IPv6 addresses", "privatelinkservices": LimitPrivateLinkServices,
	"networksecuritygroups": "security groups",
}

// ListRegionUsages returns the usage of the quotas that Services use. A negative quota is none.
func ListRegionUsages(region string, all []RegionUsage) []LimitUsage {
	var found []LimitUsage
	for _, u := range all {
		if name, ok := regionQuotas[strings.ToLower(u.Name)]; ok && u.Max >= 0 {
			found = append(found, LimitUsage{Resource: "region " + region, Name: name, Was: u.Used, Used: u.Used, Max: u.Max})
		}
	}
	return found
}
