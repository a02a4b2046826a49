// SPDX-License-Identifier: Apache-2.0

package azure

import "testing"

// * matches anything; case is ignored.
func TestActions(t *testing.T) {
	for _, tt := range []struct {
		pattern, action string
		want            bool
	}{
		{"*", "Microsoft.Network/loadBalancers/read", true},
		{"*/read", "Microsoft.Network/loadBalancers/read", true},
		{"*/read", "Microsoft.Network/loadBalancers/write", false},
		{"microsoft.network/LOADBALANCERS/read", "Microsoft.Network/loadBalancers/read", true},
		{"Microsoft.Network/*", "Microsoft.Network/loadBalancers/read", true},
		{"Microsoft.Network/*/read", "Microsoft.Network/loadBalancers/backendAddressPools/read", true},
		{"Microsoft.Network/loadBalancers/*", "Microsoft.Network/publicIPAddresses/read", false},
		{"Microsoft.*/loadBalancers/*/write", "Microsoft.Network/loadBalancers/write", false},
		{"Microsoft.Network/loadBalancers/read", "Microsoft.Network/loadBalancers/readx", false},
		{"", "a", false},
	} {
		if got := matchesAny([]string{tt.pattern}, tt.action); got != tt.want {
			t.Errorf("%s means %s: %v", tt.pattern, tt.action, got)
		}
	}
}
