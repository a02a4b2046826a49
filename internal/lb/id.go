// SPDX-License-Identifier: Apache-2.0

package lb

import (
	"fmt"
	"regexp"
	"strings"
)

// LoadBalancerID identifies a load balancer. Azure IDs are case-insensitive: compare Keys, not IDs.
type LoadBalancerID struct {
	SubscriptionID string
	ResourceGroup  string
	Name           string
}

// PoolID identifies a backend address pool of a load balancer.
type PoolID struct {
	LoadBalancer LoadBalancerID
	Name         string
}

// LoadBalancerKey is a lower-case LoadBalancerID.
type LoadBalancerKey string

// PoolKey is a lower-case PoolID.
type PoolKey string

// String returns the ARM ID. Validate it before use in a URL.
func (id LoadBalancerID) String() string {
	return "/subscriptions/" + id.SubscriptionID +
		"/resourceGroups/" + id.ResourceGroup +
		"/providers/Microsoft.Network/loadBalancers/" + id.Name
}

// Key returns the lower-case ID.
func (id LoadBalancerID) Key() LoadBalancerKey {
	return LoadBalancerKey(strings.ToLower(id.String()))
}

// String returns the ARM ID. Validate it before use in a URL.
func (id PoolID) String() string {
	return id.LoadBalancer.String() + "/backendAddressPools/" + id.Name
}

// Key returns the lower-case ID.
func (id PoolID) Key() PoolKey { return PoolKey(strings.ToLower(id.String())) }

// PoolNames returns the names of the pools on a load balancer.
func PoolNames(id LoadBalancerID, pools []PoolID) []string {
	var names []string
	for _, p := range pools {
		if p.LoadBalancer.Key() == id.Key() {
			names = append(names, p.Name)
		}
	}
	return names
}

// LoadBalancer returns the key of the pool's load balancer.
func (k PoolKey) LoadBalancer() LoadBalancerKey {
	return LoadBalancerKey(k[:max(0, strings.LastIndex(string(k), "/backendaddresspools/"))])
}

// Azure's naming rules:
// https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules
// Resource groups may contain other letters; only ASCII is supported here.
var (
	subscriptionRule  = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	resourceGroupRule = regexp.MustCompile(`^[0-9A-Za-z_().-]{0,89}[0-9A-Za-z_()-]$`)
	nameRule          = regexp.MustCompile(`^[0-9A-Za-z]([0-9A-Za-z_.-]{0,78}[0-9A-Za-z_])?$`)
)

// Validate returns an error for the first invalid part. Requests need valid IDs.
func (id LoadBalancerID) Validate() error {
	switch {
	case !subscriptionRule.MatchString(id.SubscriptionID):
		return fmt.Errorf("subscription id %q: want letters, digits and hyphens", id.SubscriptionID)
	case !resourceGroupRule.MatchString(id.ResourceGroup):
		return fmt.Errorf("resource group %q: want 1 to 90 letters, digits, '_', '-', '.', '(' or ')', not ending in '.'", id.ResourceGroup)
	case !nameRule.MatchString(id.Name):
		return fmt.Errorf("load balancer name %q: want 1 to 80 letters, digits, '_', '-' or '.', starting with a letter or digit, ending with a letter, digit or '_'", id.Name)
	}
	return nil
}

// Validate returns an error for the first invalid part.
func (id PoolID) Validate() error {
	if err := id.LoadBalancer.Validate(); err != nil {
		return err
	}
	if !nameRule.MatchString(id.Name) {
		return fmt.Errorf("pool name %q: want 1 to 80 letters, digits, '_', '-' or '.', starting with a letter or digit, ending with a letter, digit or '_'", id.Name)
	}
	return nil
}
