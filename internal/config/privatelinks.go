// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"

	"weir.dev/weir/internal/lb"
)

// maxPrivateLinks limits the setting; Azure's own limit can be raised on request.
const maxPrivateLinks = 1000

// PrivateLinks configures Private Link Services.
type PrivateLinks struct {
	// PrivateLinkServiceResourceGroup is their default resource group; empty means the cluster's.
	PrivateLinkServiceResourceGroup string `json:"privateLinkServiceResourceGroup,omitempty"`
	// MaximumPrivateLinkServices limits them per load balancer; unset means Azure's default of 8.
	MaximumPrivateLinkServices *int `json:"maximumPrivateLinkServiceCount,omitempty"`
	// DisableSubnetPolicies lets Weir disable the network policies of a subnet that prevent Private Link
	// Services.
	DisableSubnetPolicies bool `json:"disablePrivateLinkServiceNetworkPolicies,omitempty"`
	// PodSubnetNames are the subnets of pod IPs.
	PodSubnetNames []string `json:"podSubnetNames,omitempty"`
}

// MaxPrivateLinks returns the limit of Private Link Services per load balancer.
func (p PrivateLinks) MaxPrivateLinks() int {
	if p.MaximumPrivateLinkServices == nil {
		return lb.MaxPrivateLinkServices
	}
	return *p.MaximumPrivateLinkServices
}

// PrivateLinkServices returns their default resource group; Name is empty.
func (c Config) PrivateLinkServices() lb.ResourceID {
	return lb.ResourceID{
		SubscriptionID: c.NetworkSubscriptionID(), ResourceGroup: firstNonEmpty(c.PrivateLinkServiceResourceGroup, c.ResourceGroup), Type: lb.TypePrivateLinkService,
	}
}

func (p PrivateLinks) validatePrivateLinks() error {
	at := lb.ResourceID{SubscriptionID: "s", ResourceGroup: firstNonEmpty(p.PrivateLinkServiceResourceGroup, "g"), Type: lb.TypePrivateLinkService, Name: "n"}
	switch limit := p.MaxPrivateLinks(); {
	case at.Validate() != nil:
		return fmt.Errorf(`key "privateLinkServiceResourceGroup" is %q: want the name of a resource group`, p.PrivateLinkServiceResourceGroup)
	case limit < 1 || limit > maxPrivateLinks:
		return fmt.Errorf(`key "maximumPrivateLinkServiceCount" is %d: want 1 to %d, or remove the key for %d`, limit, maxPrivateLinks, lb.MaxPrivateLinkServices)
	}
	for _, name := range p.PodSubnetNames {
		if !subnetRule.MatchString(name) {
			return fmt.Errorf(`key "podSubnetNames" has %q: want names of subnets`, name)
		}
	}
	return nil
}
