// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// MostNamed is how many members of a kind are named of a pool that is not level.
const MostNamed = 50

// Differs is how a pool, as it was read, differs from what is wanted.
type Differs struct {
	// Missing are wanted and not there, Surplus are there and do not belong there any more, and
	// Foreign are what others have put there.
	Missing, Surplus, Foreign Members
}

// Members are the first of so many, by their addresses. Of network interfaces of others no address is known.
type Members struct {
	Count int
	Named []netip.Addr
}

// membersOf returns addresses, and count if that is more: not all members have one.
func membersOf(ips []netip.Addr, count int) Members {
	ips = sorted(slices.Clone(ips))
	return Members{max(count, len(ips)), slices.Clone(ips[:min(len(ips), MostNamed)])}
}

// Differs says how the pool differed when it was read; nil if it was not, or not compared.
func (r Result) Differs() *Differs {
	c := r.Todo
	if !c.compared {
		return nil
	}
	return &Differs{
		Missing: membersOf(c.added, 0), Surplus: membersOf(c.removed, 0), Foreign: membersOf(c.foreign, c.Foreign),
	}
}

// lacking returns those of the wanted that are not here.
func lacking(wanted, here []lb.Address) (ips []netip.Addr) {
	there := make(map[netip.Addr]bool, len(here))
	for _, a := range here {
		there[a.IP] = true
	}
	for _, a := range wanted {
		if !there[a.IP] {
			ips = append(ips, a.IP)
		}
	}
	return ips
}
