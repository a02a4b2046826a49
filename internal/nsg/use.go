// SPDX-License-Identifier: Apache-2.0

package nsg

import "weir.dev/weir/internal/lb"

// Use is how much of its limits a security group uses: rules, and the addresses and ranges of all rules.
type Use struct{ Rules, Sources, Destinations int }

// UseOf returns what rules use of the limits of their group.
func UseOf(rules []lb.SecurityRule) Use {
	u := &room{}
	for _, r := range rules {
		u.add(r)
	}
	return Use{u.rules, u.sources, u.destinations}
}
