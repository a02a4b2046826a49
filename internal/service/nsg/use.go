// SPDX-License-Identifier: Apache-2.0

package nsg

import "weir.dev/weir/internal/lb"

// Use is the usage of a security group's Azure limits.
type Use struct{ Rules, Sources, Destinations int }

// UseOf returns the usage of rules.
func UseOf(rules []lb.SecurityRule) Use {
	u := &capacity{}
	for _, r := range rules {
		u.addRule(r)
	}
	return Use{u.rules, u.sources, u.destinations}
}
