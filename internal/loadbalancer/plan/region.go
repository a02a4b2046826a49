// SPDX-License-Identifier: Apache-2.0

package plan

import "strings"

// RegionUsage is the usage of a quota of the subscription in a region, as Azure reports it.
type RegionUsage struct {
	Name      string
	Used, Max int
}

// Names of quotas.
const (
	QuotaLoadBalancers         = "load balancers"
	QuotaStandardLoadBalancers = "Standard load balancers"
	QuotaPublicIPs             = "public IPs"
	QuotaStandardIPv4          = "Standard public IPv4 addresses"
	QuotaStandardIPv6          = "Standard public IPv6 addresses"
)

// regionPrefix begins the resource of a quota. Names of Azure's resources have no spaces.
const regionPrefix = "region "

// regionQuotas are the quotas of a region that Services use, by Azure's name in lower case. A quota of the subscription can
// be raised, so that only Azure knows it.
var regionQuotas = map[string]string{
	"loadbalancers": QuotaLoadBalancers, "standardskuloadbalancers": QuotaStandardLoadBalancers,
	"publicipaddresses": QuotaPublicIPs, "ipv4standardskupublicipaddresses": QuotaStandardIPv4,
	"ipv6standardskupublicipaddresses": QuotaStandardIPv6, "privatelinkservices": LimitPrivateLinkServices,
	"networksecuritygroups": "security groups",
}

// ListRegionUsages returns the usage of the quotas that Services use. A negative quota is none.
func ListRegionUsages(region string, usages []RegionUsage) []LimitUsage {
	var found []LimitUsage
	for _, u := range usages {
		if name, ok := regionQuotas[strings.ToLower(u.Name)]; ok && u.Max >= 0 {
			found = append(found, LimitUsage{Resource: regionPrefix + region, Name: name, Was: u.Used, Used: u.Used, Max: u.Max})
		}
	}
	return found
}

// IsOfRegion reports whether the limit is a quota of the subscription in a region.
func (u LimitUsage) IsOfRegion() bool { return strings.HasPrefix(u.Resource, regionPrefix) }

// NormalizeLocation returns the same name for all spellings of a region.
func NormalizeLocation(location string) string {
	return strings.ToLower(strings.ReplaceAll(location, " ", ""))
}
