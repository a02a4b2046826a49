// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// openClaims includes earlier migrations.
func (j Journal) openClaims() []LoadBalancer {
	var loadBalancers []LoadBalancer
	for _, b := range append(slices.Clone(j.LoadBalancers), j.Claims...) {
		b.Addresses = slices.DeleteFunc(slices.Clone(b.Addresses), func(a Address) bool { return !a.IsClaim })
		if len(b.Addresses) > 0 {
			loadBalancers = append(loadBalancers, b)
		}
	}
	return loadBalancers
}

// FilterClaims returns the given addresses that are claims.
func (j Journal) FilterClaims(names []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(names), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(j.openClaims(), func(b LoadBalancer) bool {
			return slices.ContainsFunc(b.Addresses, func(a Address) bool { return a.IP == ip })
		})
	})
}

// ClaimFor returns the private address claimed for a frontend that leaves the choice to Azure.
func (j Journal) ClaimFor(f lb.Frontend, requests UserRequests) (netip.Addr, bool) {
	for _, b := range j.openClaims() {
		for _, a := range b.Addresses {
			if a.PublicIP == "" && strings.EqualFold(a.Frontend, f.Name) && strings.EqualFold(a.Subnet, f.Subnet) && requests.FindRelease(a) == nil {
				return a.IP, true
			}
		}
	}
	return netip.Addr{}, false
}

// HasClaims reports whether there is a claim that no user has given up.
func (j Journal) HasClaims(requests UserRequests) bool {
	return slices.ContainsFunc(j.openClaims(), func(b LoadBalancer) bool {
		return slices.ContainsFunc(b.Addresses, func(a Address) bool { return requests.FindRelease(a) == nil })
	})
}

// AddressRelease is a user's consent to lose an address.
type AddressRelease struct {
	Address  netip.Addr `json:"address"`
	Frontend string     `json:"frontend"`
	UserRequest
}

// ReleaseAddress fails if the migration has the address, may still get it, or doesn't know it.
func (u UserRequests) ReleaseAddress(j Journal, ip netip.Addr, request UserRequest) (UserRequests, error) {
	isClaim := false
	for _, b := range j.openClaims() {
		for _, address := range b.Addresses {
			if address.IP != ip {
				continue
			}
			if isClaim = true; u.FindRelease(address) == nil {
				u.Releases = append(slices.Clone(u.Releases), AddressRelease{ip, address.Frontend, request})
			}
		}
	}
	if isClaim {
		return u, nil
	}
	for _, b := range j.LoadBalancers {
		for _, address := range b.Addresses {
			switch {
			case address.IP != ip:
			case address.RejectReason != "" && j.IsOpen():
				return u, fmt.Errorf("%s cannot be given up: the migration waits until Azure has released it. weir migrate status shows what holds it", ip)
			default:
				return u, fmt.Errorf("%s cannot be given up: Azure has not refused it", ip)
			}
		}
	}
	return u, fmt.Errorf("%s cannot be given up: no migration has it on record. weir migrate status lists the addresses", ip)
}

// FindRelease returns nil if the address was not given up.
func (u UserRequests) FindRelease(of Address) *UserRequest {
	for i, g := range u.Releases {
		if g.Address == of.IP && g.Frontend == of.Frontend {
			return &u.Releases[i].UserRequest
		}
	}
	return nil
}
