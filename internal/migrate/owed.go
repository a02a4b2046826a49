// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// owed are the addresses that this migration and earlier ones owe to Services.
func (j Journal) owed() []Balancer {
	var all []Balancer
	for _, b := range append(slices.Clone(j.Balancers), j.Owed...) {
		b.Addresses = slices.DeleteFunc(slices.Clone(b.Addresses), func(a Address) bool { return !a.Owed })
		if len(b.Addresses) > 0 {
			all = append(all, b)
		}
	}
	return all
}

// OwedOf returns those of some addresses that are owed.
func (j Journal) OwedOf(some []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(some), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(j.owed(), func(b Balancer) bool {
			return slices.ContainsFunc(b.Addresses, func(a Address) bool { return a.IP == ip })
		})
	})
}

// Owes returns the private address that a frontend has to get, though its Service leaves the address to Azure: it had
// that one before a migration, Azure refused it then, and no user has given it up.
func (j Journal) Owes(f lb.Frontend, asked Asked) (netip.Addr, bool) {
	for _, b := range j.owed() {
		for _, a := range b.Addresses {
			if a.PublicIP == "" && strings.EqualFold(a.Frontend, f.Name) && strings.EqualFold(a.Subnet, f.Subnet) && asked.GaveUp(a) == nil {
				return a.IP, true
			}
		}
	}
	return netip.Addr{}, false
}

// IsOwing reports whether an address is owed that no user has given up.
func (j Journal) IsOwing(asked Asked) bool {
	return slices.ContainsFunc(j.owed(), func(b Balancer) bool {
		return slices.ContainsFunc(b.Addresses, func(a Address) bool { return asked.GaveUp(a) == nil })
	})
}

// Agreement is an address that a user gives up, so that its Service gets another one.
type Agreement struct {
	Address  netip.Addr `json:"address"`
	Frontend string     `json:"frontend"`
	Wish
}

// GiveUp returns what is asked once a user gives an address up. An error says why that is not possible: the
// migration may get the address yet, or has it, or knows nothing of it.
func (a Asked) GiveUp(j Journal, ip netip.Addr, wish Wish) (Asked, error) {
	owed := false
	for _, b := range j.owed() {
		for _, has := range b.Addresses {
			if has.IP != ip {
				continue
			}
			if owed = true; a.GaveUp(has) == nil {
				a.GivenUp = append(slices.Clone(a.GivenUp), Agreement{ip, has.Frontend, wish})
			}
		}
	}
	if owed {
		return a, nil
	}
	for _, b := range j.Balancers {
		for _, has := range b.Addresses {
			switch {
			case has.IP != ip:
			case has.Refused != "" && j.Open():
				return a, fmt.Errorf("%s cannot be given up: the migration waits until Azure has released it. weir migrate status says what holds it", ip)
			default:
				return a, fmt.Errorf("%s cannot be given up: Azure has not refused it", ip)
			}
		}
	}
	return a, fmt.Errorf("%s cannot be given up: no migration has it on record. weir migrate status lists the addresses", ip)
}

// GaveUp returns the wish to give an address up; nil if there is none.
func (a Asked) GaveUp(of Address) *Wish {
	for i, g := range a.GivenUp {
		if g.Address == of.IP && g.Frontend == of.Frontend {
			return &a.GivenUp[i].Wish
		}
	}
	return nil
}
