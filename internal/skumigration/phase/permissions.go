// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// RequiredPermission is a set of actions at a scope: a resource group or a subnet.
type RequiredPermission struct {
	Scope   string
	Actions []string
}

// RequiredPermissions covers the remaining requests and an undo, but not resources referenced by a written
// machine.
func RequiredPermissions(j Journal, snapshot Snapshot) []RequiredPermission {
	items := map[string]map[string]bool{}
	add := func(scope string, actions ...string) {
		if items[scope] == nil {
			items[scope] = map[string]bool{}
		}
		for _, action := range actions {
			items[scope][action] = true
		}
	}
	group := func(subscription, name string) string {
		return "/subscriptions/" + subscription + "/resourceGroups/" + name
	}
	for _, b := range j.LoadBalancers {
		at := group(b.ID.SubscriptionID, b.ID.ResourceGroup)
		add(at, "Microsoft.Network/loadBalancers/read", "Microsoft.Network/loadBalancers/write", "Microsoft.Network/loadBalancers/delete")
		for _, a := range b.Addresses {
			if id, err := lb.ParseResourceID(a.PublicIP, lb.TypePublicIP); err == nil {
				add(group(id.SubscriptionID, id.ResourceGroup),
					"Microsoft.Network/publicIPAddresses/read", "Microsoft.Network/publicIPAddresses/write", "Microsoft.Network/publicIPAddresses/join/action")
			} else if a.Subnet != "" {
				add(a.Subnet, "Microsoft.Network/virtualNetworks/subnets/join/action")
			}
		}
	}
	for _, i := range snapshot.Interfaces {
		add(group(i.ID.SubscriptionID, i.ID.ResourceGroup), "Microsoft.Network/networkInterfaces/read", "Microsoft.Network/networkInterfaces/write")
	}
	const scaleSets = "Microsoft.Compute/virtualMachineScaleSets/"
	for _, s := range snapshot.ScaleSets {
		at := group(s.ID.SubscriptionID, s.ID.ResourceGroup)
		if add(at, scaleSets+"read", scaleSets+"write"); s.Uniform {
			add(at, scaleSets+"manualUpgrade/action", scaleSets+"virtualMachines/read", scaleSets+"virtualMachines/write")
		}
	}
	var permissions []RequiredPermission
	for _, scope := range slices.SortedFunc(maps.Keys(items), func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) }) {
		permissions = append(permissions, RequiredPermission{scope, slices.Sorted(maps.Keys(items[scope]))})
	}
	return permissions
}
