// SPDX-License-Identifier: Apache-2.0

package migration

import (
	"context"
	"net/netip"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/migrate"
	"weir.dev/weir/internal/sleep"
)

// Owed holds the addresses that Services still claim after a migration, see
// migrate.Address.IsClaim. It is safe for concurrent use; nil has none.
type Owed struct {
	mu      sync.Mutex
	journal migrate.Journal
	asked   migrate.Asked
}

// OwedBy returns the claims of a journal.
func OwedBy(j migrate.Journal, requests migrate.Asked) *Owed {
	return &Owed{journal: j, asked: requests}
}

// Address returns the address to request for a private frontend, if any.
func (o *Owed) Address(f lb.Frontend) (netip.Addr, bool) {
	if o == nil {
		return netip.Addr{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.journal.Owes(f, o.asked)
}

func (o *Owed) set(j migrate.Journal, requests migrate.Asked) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.journal, o.asked = j, requests
}

// watch polls until there is no claim.
func (o *Owed) watch(ctx context.Context, store Store) {
	for o != nil && ctx.Err() == nil && o.any() {
		if j, requests, err := store.Read(ctx); err == nil {
			o.set(j, requests)
		}
		_ = sleep.For(ctx, listensEvery)
	}
}

func (o *Owed) any() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.journal.IsOwing(o.asked)
}
