// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// MostNamed is the number of members listed per kind.
const MostNamed = 50

// Differs is how a pool differs from its desired state.
type Differs struct {
	// Missing are absent, followed by unwanted members and those of other owners.
	Missing, Surplus, Foreign Members
}

// Members is a count with the first addresses. Network interfaces of other owners have none.
type Members struct {
	Count int
	Named []netip.Addr
}

// membersOf uses count if larger, because not all members have an address.
func membersOf(ips []netip.Addr, count int) Members {
	ips = sorted(slices.Clone(ips))
	return Members{max(count, len(ips)), slices.Clone(ips[:min(len(ips), MostNamed)])}
}

// Differs returns nil if the pool was not compared.
func (r Result) Differs() *Differs {
	c := r.Todo
	if !c.compared {
		return nil
	}
	return &Differs{
		Missing: membersOf(c.added, 0), Surplus: membersOf(c.removed, 0), Foreign: membersOf(c.foreign, c.Foreign),
	}
}

func lacking(wanted, present []lb.Address) (ips []netip.Addr) {
	there := make(map[netip.Addr]bool, len(present))
	for _, a := range present {
		there[a.IP] = true
	}
	for _, a := range wanted {
		if !there[a.IP] {
			ips = append(ips, a.IP)
		}
	}
	return ips
}
