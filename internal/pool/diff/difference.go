// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// MaxListed is the number of members listed per kind.
const MaxListed = 50

// Difference is how a pool differs from its desired state.
type Difference struct {
	Missing, Unwanted, Foreign MemberList
}

// MemberList is a count with the first addresses. Network interfaces of other owners have none.
type MemberList struct {
	Count  int
	Listed []netip.Addr
}

func newMemberList(ips []netip.Addr, count int) MemberList {
	ips = sortIPs(slices.Clone(ips))
	return MemberList{max(count, len(ips)), slices.Clone(ips[:min(len(ips), MaxListed)])}
}

// Difference returns nil if the pool was not compared.
func (r Result) Difference() *Difference {
	c := r.Change
	if !c.isCompared {
		return nil
	}
	return &Difference{
		Missing: newMemberList(c.addedIPs, 0), Unwanted: newMemberList(c.removedIPs, 0), Foreign: newMemberList(c.foreignIPs, c.ForeignCount),
	}
}

func missingIPs(wanted, present []lb.Address) (ips []netip.Addr) {
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
