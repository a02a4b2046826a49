// SPDX-License-Identifier: Apache-2.0

// Package keeping decides which members on record stay in a pool for a while though the cluster does not
// have them there any more: a label keeps their node out and something serves on it, or what is known of
// the cluster may be old.
package keeping

import (
	"net/netip"
	"sync"
	"time"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
)

// Keeper decides it, and knows in which pools members stay because what is known may be old. Its methods
// may be called from any goroutine.
type Keeper struct {
	// Stale reports whether what is known of the cluster may be old; nil if it never is.
	Stale func(now time.Time) bool
	// NodeAt returns the node of an address; false if it is not known.
	NodeAt func(ip netip.Addr) (membership.Node, bool)

	mu   sync.Mutex
	held map[poolschedule.Ref]int
}

// Members returns the members of a pool, those that stay included, and when the next of them leaves; zero
// if none does. record returns what is on record of the pool.
func (k *Keeper) Members(ref poolschedule.Ref, set membership.Set, record func() membership.OnRecord, now time.Time) (kept membership.Set, again time.Time) {
	stale := k.Stale != nil && k.Stale(now)
	if kept = set; stale || len(set.Leaving) > 0 {
		has := record()
		kept, again = set.KeepLeaving(has, now)
		if stale {
			kept = kept.KeepRemoved(has, k.NodeAt)
		}
	}
	if stale {
		k.note(ref, kept.Held)
	}
	return kept, again
}

// note records how many members stay. Only Release forgets the pool: once what is known is no longer
// old, a caller may ask for the members and write nothing.
func (k *Keeper) note(ref poolschedule.Ref, held int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, isNoted := k.held[ref]; held == 0 && !isNoted {
		return
	}
	if k.held == nil {
		k.held = map[poolschedule.Ref]int{}
	}
	k.held[ref] = held
}

// Held counts the members that stay because what is known may be old.
func (k *Keeper) Held() (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, held := range k.held {
		n += held
	}
	return n
}

// Release returns the pools with such members, and forgets them. The caller reconciles each: nothing
// else removes these members.
func (k *Keeper) Release() (refs []poolschedule.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for ref := range k.held {
		refs = append(refs, ref)
	}
	k.held = nil
	return refs
}
