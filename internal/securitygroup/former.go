// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"net/netip"
	"slices"
	"sync"
)

// Former tracks addresses that Services had or are about to release, until the security group is closed
// there. The status is not sufficient: the API server clears it when the type changes, and it is written
// after the group.
type Former struct {
	mu sync.Mutex
	of map[string][]netip.Addr // by owner
}

// Note adds addresses that a Service had.
func (f *Former) Note(owner string, addresses []netip.Addr) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range addresses {
		if a.IsValid() && !slices.Contains(f.of[owner], a) {
			if f.of == nil {
				f.of = map[string][]netip.Addr{}
			}
			f.of[owner] = append(f.of[owner], a)
		}
	}
}

// Addresses returns the addresses that a Service had.
func (f *Former) Addresses(owner string) []netip.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.of[owner])
}

// Forget drops the addresses of a Service after the group was written.
func (f *Former) Forget(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, owner)
}
