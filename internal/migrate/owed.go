// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// owed includes earlier migrations.
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

// OwedOf returns the given addresses that are claims.
func (j Journal) OwedOf(names []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(names), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(j.owed(), func(b Balancer) bool {
			return slices.ContainsFunc(b.Addresses, func(a Address) bool { return a.IP == ip })
		})
	})
}

// Owes returns the private address claimed for a frontend that leaves the choice to Azure.
func (j Journal) Owes(f lb.Frontend, requests Asked) (netip.Addr, bool) {
	for _, b := range j.owed() {
		for _, a := range b.Addresses {
			if a.PublicIP == "" && strings.EqualFold(a.Frontend, f.Name) && strings.EqualFold(a.Subnet, f.Subnet) && requests.GaveUp(a) == nil {
				return a.IP, true
			}
		}
	}
	return netip.Addr{}, false
}

// IsOwing reports whether there is a claim that no user has given up.
func (j Journal) IsOwing(requests Asked) bool {
	return slices.ContainsFunc(j.owed(), func(b Balancer) bool {
		return slices.ContainsFunc(b.Addresses, func(a Address) bool { return requests.GaveUp(a) == nil })
	})
}

// Agreement is a user's consent to lose an address.
type Agreement struct {
	Address  netip.Addr `json:"address"`
	Frontend string     `json:"frontend"`
	Wish
}

// GiveUp fails if the migration has the address, may still get it, or doesn't know it.
func (a Asked) GiveUp(j Journal, ip netip.Addr, request Wish) (Asked, error) {
	isClaim := false
	for _, b := range j.owed() {
		for _, has := range b.Addresses {
			if has.IP != ip {
				continue
			}
			if isClaim = true; a.GaveUp(has) == nil {
				a.GivenUp = append(slices.Clone(a.GivenUp), Agreement{ip, has.Frontend, request})
			}
		}
	}
	if isClaim {
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

// GaveUp returns nil if the address was not given up.
func (a Asked) GaveUp(of Address) *Wish {
	for i, g := range a.GivenUp {
		if g.Address == of.IP && g.Frontend == of.Frontend {
			return &a.GivenUp[i].Wish
		}
	}
	return nil
}
