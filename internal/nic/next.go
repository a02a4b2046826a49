// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"slices"

	"weir.dev/weir/internal/lb"
)

// Next is the desired configuration of an interface.
type Next struct {
	lb.InterfaceConfiguration
	Changed bool
	// MissingFamilies are families without an address for which there are pools.
	MissingFamilies []lb.Family
}

// NextConfiguration puts the primary IP configuration of each family into the wanted and the foreign pools.
// Existing pools retain their order; new ones are appended.
func NextConfiguration(observed lb.InterfaceConfiguration, want Pools, managed ManagedPools) Next {
	next := Next{InterfaceConfiguration: observed}
	next.IPConfigurations = slices.Clone(observed.IPConfigurations)
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		at := primaryIPIndex(next.IPConfigurations, family)
		if at < 0 {
			if len(want[family]) > 0 {
				next.MissingFamilies = append(next.MissingFamilies, family)
			}
			continue
		}
		ip := &next.IPConfigurations[at]
		pools := nextPools(ip.Pools, want[family], managed)
		next.Changed = next.Changed || !slices.Equal(pools, ip.Pools)
		ip.Pools = pools
	}
	return next
}

func nextPools(observed []string, want []lb.PoolID, managed ManagedPools) []string {
	wanted, present := map[lb.PoolKey]bool{}, map[lb.PoolKey]bool{}
	for _, id := range want {
		wanted[id.Key()] = true
	}
	next := make([]string, 0, len(observed)+len(want))
	for _, id := range observed {
		key := poolKey(id)
		switch {
		case wanted[key] && !present[key], !wanted[key] && !managed[key]:
			next = append(next, id)
		}
		present[key] = true
	}
	for _, id := range want {
		if !present[id.Key()] {
			next = append(next, id.String())
			present[id.Key()] = true
		}
	}
	return next
}

// primaryIPIndex returns the index of a family's primary IP configuration, or -1. Azure marks one per
// interface; the first of the other family counts as primary.
func primaryIPIndex(ips []lb.IPConfiguration, family lb.Family) int {
	at := slices.IndexFunc(ips, func(ip lb.IPConfiguration) bool { return ip.Family == family && ip.Primary })
	if at < 0 {
		at = slices.IndexFunc(ips, func(ip lb.IPConfiguration) bool { return ip.Family == family })
	}
	return at
}

// primaryInterfaceIndex returns the index of the marked or the only interface, or -1.
func primaryInterfaceIndex(interfaces []lb.InterfaceConfiguration) int {
	if at := slices.IndexFunc(interfaces, func(i lb.InterfaceConfiguration) bool { return i.Primary }); at >= 0 {
		return at
	}
	if len(interfaces) == 1 {
		return 0
	}
	return -1
}

// nextConfigurations changes the primary interface; false if there is none.
func nextConfigurations(observed []lb.InterfaceConfiguration, want Pools, managed ManagedPools) (next []lb.InterfaceConfiguration, n Next, ok bool) {
	at := primaryInterfaceIndex(observed)
	if at < 0 {
		return observed, Next{}, false
	}
	n = NextConfiguration(observed[at], want, managed)
	next = slices.Clone(observed)
	next[at] = n.InterfaceConfiguration
	return next, n, true
}
