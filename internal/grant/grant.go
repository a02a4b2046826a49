// SPDX-License-Identifier: Apache-2.0

// Package grant says which load balancers a namespace may bind pools of, and which public IPs of other
// namespaces its Services may use.
package grant

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Annotation on a Namespace lists the load balancers of which BackendPools in it may bind
// pools: who may edit what is in a namespace may not edit the Namespace.
const Annotation = "weir.dev/allowed-load-balancers"

// all stands for all load balancers.
const all = "*"

// Allows reports whether a list allows a load balancer. An entry is name,
// resourceGroup/name, subscription/resourceGroup/name or *; what it leaves out is as in
// home. Letters of ASCII compare without case, as Azure's names do; what is no entry allows
// nothing.
func Allows(list string, home, balancer lb.LoadBalancerID) bool {
	for entry := range strings.SplitSeq(list, ",") {
		if allows(strings.TrimSpace(entry), home, balancer) {
			return true
		}
	}
	return false
}

func allows(entry string, home, balancer lb.LoadBalancerID) bool {
	if entry == all {
		return true
	}
	parts := strings.Split(entry, "/")
	if len(parts) > 3 {
		return false
	}
	is := []string{balancer.SubscriptionID, balancer.ResourceGroup, balancer.Name}
	want := slices.Concat([]string{home.SubscriptionID, home.ResourceGroup}[:3-len(parts)], parts)
	for i := range want {
		if want[i] == "" || lower(want[i]) != lower(is[i]) {
			return false
		}
	}
	return true
}

// lower leaves letters beyond ASCII alone, some of which Unicode folds into those of ASCII.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
