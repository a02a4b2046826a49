// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"slices"

	"weir.dev/weir/internal/lb"
)

// Next is what an interface shall say.
type Next struct {
	lb.InterfaceConfiguration
	// Changed is true if it has to be written.
	Changed bool
	// Lacks are the families for which pools are wanted and the interface has no address.
	Lacks []lb.Family
}

// NextOf returns an interface whose primary IP configuration of each family is in the pools that
// are wanted, in all that are not ours, and in no others. What it is in keeps its order; what is
// added comes last. Nothing else is changed, and what it is given is left as it is.
func NextOf(shown lb.InterfaceConfiguration, want Pools, ours Ours) Next {
	next := Next{InterfaceConfiguration: shown}
	next.IPConfigurations = slices.Clone(shown.IPConfigurations)
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		at := primary(next.IPConfigurations, family)
		if at < 0 {
			if len(want[family]) > 0 {
				next.Lacks = append(next.Lacks, family)
			}
			continue
		}
		ip := &next.IPConfigurations[at]
		pools := poolsOf(ip.Pools, want[family], ours)
		next.Changed = next.Changed || !slices.Equal(pools, ip.Pools)
		ip.Pools = pools
	}
	return next
}

// poolsOf returns the pools that an IP configuration shall be in.
func poolsOf(shown []string, want []lb.PoolID, ours Ours) []string {
	wanted, has := map[lb.PoolKey]bool{}, map[lb.PoolKey]bool{}
	for _, id := range want {
		wanted[id.Key()] = true
	}
	next := make([]string, 0, len(shown)+len(want))
	for _, id := range shown {
		key := keyOf(id)
		switch {
		case wanted[key] && !has[key], !wanted[key] && !ours[key]:
			next = append(next, id)
		}
		has[key] = true
	}
	for _, id := range want {
		if !has[id.Key()] {
			next = append(next, id.String())
			has[id.Key()] = true
		}
	}
	return next
}

// primary returns the index of the primary IP configuration of a family; -1 if there is none of
// the family. Azure marks one of an interface, which is of IPv4 where it has both; the first of the
// other family stands for that.
func primary(ips []lb.IPConfiguration, family lb.Family) int {
	at := slices.IndexFunc(ips, func(ip lb.IPConfiguration) bool { return ip.Family == family && ip.Primary })
	if at < 0 {
		at = slices.IndexFunc(ips, func(ip lb.IPConfiguration) bool { return ip.Family == family })
	}
	return at
}

// primaryOf returns the index of a machine's primary interface: the one that is marked, or the
// only one; -1 if neither is there.
func primaryOf(interfaces []lb.InterfaceConfiguration) int {
	if at := slices.IndexFunc(interfaces, func(i lb.InterfaceConfiguration) bool { return i.Primary }); at >= 0 {
		return at
	}
	if len(interfaces) == 1 {
		return 0
	}
	return -1
}

// nextOfAll is NextOf for the primary one of several interfaces; false if none is primary.
func nextOfAll(shown []lb.InterfaceConfiguration, want Pools, ours Ours) (next []lb.InterfaceConfiguration, n Next, ok bool) {
	at := primaryOf(shown)
	if at < 0 {
		return shown, Next{}, false
	}
	n = NextOf(shown[at], want, ours)
	next = slices.Clone(shown)
	next[at] = n.InterfaceConfiguration
	return next, n, true
}
