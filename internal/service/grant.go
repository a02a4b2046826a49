// SPDX-License-Identifier: Apache-2.0

package service

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// LoadBalancersAnnotation on a Namespace lists the load balancers that its BackendPools may bind pools of. Editors
// of objects in a namespace can't edit the Namespace itself.
const LoadBalancersAnnotation = "weir.dev/allowed-load-balancers"

// GatewayLoadBalancersAnnotation on a Namespace lists the gateway load balancers that its Services may chain their
// frontends to, as LoadBalancersAnnotation does.
const GatewayLoadBalancersAnnotation = "weir.dev/allowed-gateway-load-balancers"

// wildcard matches every load balancer.
const wildcard = "*"

// IsLoadBalancerAllowed reports whether a list allows a load balancer. An entry is name, resourceGroup/name,
// subscription/resourceGroup/name or *; missing parts are taken from home. ASCII case is ignored,
// as in Azure. Invalid entries allow nothing.
func IsLoadBalancerAllowed(list string, home, balancer lb.LoadBalancerID) bool {
	for entry := range strings.SplitSeq(list, ",") {
		if entryMatches(strings.TrimSpace(entry), home, balancer) {
			return true
		}
	}
	return false
}

func entryMatches(entry string, home, balancer lb.LoadBalancerID) bool {
	if entry == wildcard {
		return true
	}
	parts := strings.Split(entry, "/")
	if len(parts) > 3 {
		return false
	}
	id := []string{balancer.SubscriptionID, balancer.ResourceGroup, balancer.Name}
	want := slices.Concat([]string{home.SubscriptionID, home.ResourceGroup}[:3-len(parts)], parts)
	for i := range want {
		if want[i] == "" || lowerASCII(want[i]) != lowerASCII(id[i]) {
			return false
		}
	}
	return true
}

// lowerASCII lowers ASCII letters only, because Unicode folds some other letters to ASCII.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
