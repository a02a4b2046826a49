// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"net/netip"
	"slices"
	"sync"
)

// Former are the addresses that Services had, or are about to give up, and at which the security
// group may still let somebody in. A status does not tell all of them: the API server empties it
// when the type changes, and it is written after the group.
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

// Addresses are those that a Service had.
func (f *Former) Addresses(owner string) []netip.Addr {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.of[owner])
}

// Forget ends that: the group has been written for the Service.
func (f *Former) Forget(owner string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, owner)
}
