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
func (o *AddressClaims) Address(f lb.Frontend) (netip.Addr, bool) {
	if o == nil {
		return netip.Addr{}, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.journal.ClaimFor(f, o.requests)
}

func (o *AddressClaims) update(j phase.Journal, requests phase.UserRequests) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.journal, o.requests = j, requests
}

// watch polls until there is no claim.
func (o *AddressClaims) watch(ctx context.Context, store Store) {
	for o != nil && ctx.Err() == nil && o.hasClaims() {
		if j, requests, err := store.Load(ctx); err == nil {
			o.update(j, requests)
		}
		_ = ratelimit.Sleep(ctx, requestPollInterval)
	}
}

func (o *AddressClaims) hasClaims() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.journal.HasClaims(o.requests)
}
