// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"net/netip"
	"slices"
	"sync"
)

// FormerAddresses tracks addresses that Services had or are about to release, until the security group is closed
// there. The status is not sufficient: the API server clears it when the type changes, and it is written
// after the group.
type FormerAddresses struct {
	mu      sync.Mutex
	byOwner map[string][]netip.Addr // by owner
}

// AddAddresses adds addresses that a Service had.
func (f *FormerAddresses) AddAddresses(owner string, addresses []netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addresses {
		if a.IsValid() && !slices.Contains(f.byOwner[owner], a) {
			if f.byOwner == nil {
				f.byOwner = map[string][]netip.Addr{}
			}
			f.byOwner[owner] = append(f.byOwner[owner], a)
		}
	}
}

// AddressesOf returns the addresses that a Service had.
func (f *FormerAddresses) AddressesOf(owner string) []netip.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.byOwner[owner])
}

// ForgetOwner drops the addresses of a Service after the group was written.
func (f *FormerAddresses) ForgetOwner(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byOwner, owner)
}
