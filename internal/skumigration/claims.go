// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"context"
	"net/netip"
	"sync"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
	"weir.dev/weir/internal/skumigration/phase"
)

// AddressClaims holds the addresses that Services still claim after a migration, see
// phase.Address.IsClaim. It is safe for concurrent use; nil has none.
type AddressClaims struct {
	mu       sync.Mutex
	journal  phase.Journal
	requests phase.UserRequests
}

// NewAddressClaims returns the claims of a journal.
func NewAddressClaims(j phase.Journal, requests phase.UserRequests) *AddressClaims {
	return &AddressClaims{journal: j, requests: requests}
}

// Address returns the address to request for a private frontend, if any.
func (a *AddressClaims) Address(f lb.Frontend) (netip.Addr, bool) {
	if a == nil {
		return netip.Addr{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.journal.ClaimFor(f, a.requests)
}

func (a *AddressClaims) update(j phase.Journal, requests phase.UserRequests) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.journal, a.requests = j, requests
}

// watch polls until there is no claim.
func (a *AddressClaims) watch(ctx context.Context, store Store) {
	for a != nil && ctx.Err() == nil && a.hasClaims() {
		if j, requests, err := store.Load(ctx); err == nil {
			a.update(j, requests)
		}
		_ = ratelimit.Sleep(ctx, requestPollInterval)
	}
}

func (a *AddressClaims) hasClaims() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.journal.HasClaims(a.requests)
}
