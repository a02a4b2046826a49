// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"weir.dev/weir/internal/lb"
)

// mostPrivateLinks is no limit of Azure's, which it lifts for those who ask: more in one list of a
// resource group are none that a cluster has.
const mostPrivateLinks = 1000

// PrivateLinks says where Private Link Services are made, and what may be done for them.
type PrivateLinks struct {
	// PrivateLinkServiceResourceGroup is where they are, unless a Service says otherwise; empty is
	// the resource group of the cluster.
	PrivateLinkServiceResourceGroup string `json:"privateLinkServiceResourceGroup,omitempty"`
	// MaximumPrivateLinkServices is how many Azure takes on a load balancer; unset is its usual 8.
	MaximumPrivateLinkServices *int `json:"maximumPrivateLinkServiceCount,omitempty"`
	// DisableSubnetPolicies has Weir turn off the network policies that keep Private Link Services
	// out of a subnet which one of them needs.
	DisableSubnetPolicies bool `json:"disablePrivateLinkServiceNetworkPolicies,omitempty"`
	// PodSubnetNames are the subnets that pods have their addresses of.
	PodSubnetNames []string `json:"podSubnetNames,omitempty"`
}

// MostPrivateLinks returns how many Private Link Services a load balancer may have.
func (p PrivateLinks) MostPrivateLinks() int {
	if p.MaximumPrivateLinkServices == nil {
		return lb.MostPrivateLinkServices
	}
	return *p.MaximumPrivateLinkServices
}

// PrivateLinkServices returns where they are; its Name is not used.
func (c Config) PrivateLinkServices() lb.ResourceID {
	return lb.ResourceID{
		SubscriptionID: c.SubscriptionID, ResourceGroup: first(c.PrivateLinkServiceResourceGroup, c.ResourceGroup), Type: lb.TypePrivateLinkService,
	}
}

func (p PrivateLinks) check() error {
	at := lb.ResourceID{SubscriptionID: "s", ResourceGroup: first(p.PrivateLinkServiceResourceGroup, "g"), Type: lb.TypePrivateLinkService, Name: "n"}
	switch most := p.MostPrivateLinks(); {
	case at.Validate() != nil:
		return fmt.Errorf(`key "privateLinkServiceResourceGroup" is %q: want the name of a resource group`, p.PrivateLinkServiceResourceGroup)
	case most < 1 || most > mostPrivateLinks:
		return fmt.Errorf(`key "maximumPrivateLinkServiceCount" is %d: want 1 to %d, or remove the key for %d`, most, mostPrivateLinks, lb.MostPrivateLinkServices)
	}
	for _, name := range p.PodSubnetNames {
		if !subnetRule.MatchString(name) {
			return fmt.Errorf(`key "podSubnetNames" has %q: want names of subnets`, name)
		}
	}
	return nil
}
