// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"maps"
	"time"
)

// Parts of what Weir may write in five minutes.
const (
	// calmPart is free for all: below it no namespace is limited.
	calmPart = 0.5
	// reservePart is for namespaces that have used less than their fair share: one that needs a write now has
	// it, whatever another one has used.
	reservePart = 0.2
	// floorPart is for each namespace, even if pools and nodes have used up all of Weir's writes.
	floorPart = 0.04
)

// minWrites is what Services may be written in five minutes, however small the share of Weir is.
const minWrites = 50

const (
	// waitsFor is how long a namespace counts as one that waits after it last needed a write.
	waitsFor = 10 * time.Second
	// maxDeferral is the longest time until the next try.
	maxDeferral = time.Minute
)

// tenant is one namespace: the writes for its Services in the last five minutes. Updates of its pools are not
// among them: these have a pace of their own.
type tenant struct {
	window   window
	wrote    time.Time // the last one
	reserved float64   // for what is being written now
	waits    time.Time // until when it counts as one that waits
	deferral Deferral
}

// Deferral is why the Services of a namespace have to wait for their next write. The zero value is none.
type Deferral struct {
	Namespace string
	// Used counts its writes of the last five minutes, and Share is its fair share. Spent counts all writes of Weir, and
	// Most is how many Weir makes at most.
	Used, Share, Spent, Most float64
	Until                    time.Time
}

// String states what is used up, and when it ends.
func (d Deferral) String() string {
	return fmt.Sprintf("namespace %s used %.0f of %.0f writes in five minutes, and its share is %.0f; all of Weir used %.0f; next write at %s",
		d.Namespace, d.Used, d.Most, d.Share, d.Spent, d.Until.UTC().Format(time.RFC3339))
}

// tenant returns that of a namespace.
func (b *Budget) tenant(namespace string) *tenant {
	t := b.tenants[namespace]
	if t == nil {
		t = &tenant{}
		b.tenants[namespace] = t
	}
	return t
}

// forServices is how many writes Weir makes for Services in five minutes. Even the smallest share lets some through.
func (b *Budget) forServices() float64 { return max(b.share*windowWrites, minWrites) }

// WroteFor counts a write for Services of these namespaces, a part for each.
func (b *Budget) WroteFor(namespaces []string, now time.Time) {
	b.dropIdleTenants(now)
	for _, n := range namespaces {
		t := b.tenant(n)
		t.window.count(now, 1/float64(len(namespaces)))
		t.wrote = now
	}
}

// dropIdleTenants drops namespaces without a write in five minutes, once a slot.
func (b *Budget) dropIdleTenants(now time.Time) {
	if slot := slotOf(now); slot != b.dropped {
		b.dropped = slot
		maps.DeleteFunc(b.tenants, func(_ string, t *tenant) bool { return !t.active(now) && t.reserved == 0 })
	}
}

// active reports whether a namespace counts among those that divide the writes.
func (t *tenant) active(now time.Time) bool {
	return t.waits.After(now) || !t.wrote.IsZero() && now.Sub(t.wrote) < windowLasts+slotLasts
}

// fairShare returns the share of a namespace, and whether another one waits for a write.
func (b *Budget) fairShare(t *tenant, now time.Time) (share float64, othersWait bool) {
	active := 1.0
	for _, other := range b.tenants {
		if other != t && other.active(now) {
			active++
			othersWait = othersWait || other.waits.After(now)
		}
	}
	return b.forServices() * (1 - reservePart) / active, othersWait
}

// room returns how many writes may be made for the Services of a namespace now. It has no floor if Azure has just
// rejected what it wants.
func (b *Budget) room(t *tenant, rejected bool, now time.Time) float64 {
	all := b.forServices()
	free, used := all-b.window.spent(now)-b.reserved, t.window.spent(now)+t.reserved
	share, othersWait := b.fairShare(t, now)
	room := max(min(share-used, free), free-all*(1-calmPart))
	if !othersWait {
		room = max(room, free-all*reservePart)
	}
	if !rejected {
		room = max(room, all*floorPart-used)
	}
	return room
}

// Defer returns why no write for the Services of a namespace may be made now; false if one may. The deferral
// is the same until its time.
func (b *Budget) Defer(namespace string, rejected bool, now time.Time) (Deferral, bool) {
	b.dropIdleTenants(now)
	t := b.tenant(namespace)
	if t.deferral.Until.After(now) {
		return t.deferral, true
	}
	t.waits = now.Add(waitsFor)
	if b.room(t, rejected, now) >= 1 {
		return Deferral{}, false
	}
	share, _ := b.fairShare(t, now)
	t.deferral = Deferral{
		Namespace: namespace, Used: t.window.spent(now), Share: share, Spent: b.window.spent(now), Most: b.forServices(),
		Until: b.ends(t, share, now),
	}
	t.waits = t.deferral.Until.Add(waitsFor)
	return t.deferral, true
}

// ends returns when there is room again if nothing more is written until then.
func (b *Budget) ends(t *tenant, share float64, now time.Time) time.Time {
	all := b.forServices()
	at := t.window.below(share-1, now)
	if free := b.window.below(all-1, now); free.After(at) {
		at = free
	}
	if calm := b.window.below(all*(1-reservePart)-1, now); calm.Before(at) {
		at = calm
	}
	if last := now.Add(maxDeferral); at.After(last) {
		at = last
	}
	if first := now.Add(slotLasts); at.Before(first) {
		at = first
	}
	return at
}

// Reserve reserves writes for the Services of a namespace, as many of those wanted as there is room for, and at
// least one. Release has to be called with their number once they are made.
func (b *Budget) Reserve(namespace string, want int, rejected bool, now time.Time) int {
	t := b.tenant(namespace)
	got := max(1, min(want, int(b.room(t, rejected, now))))
	t.reserved += float64(got)
	b.reserved += float64(got)
	return got
}

// Release ends a reservation: what was written is counted by then.
func (b *Budget) Release(namespace string, reserved int) {
	if t := b.tenants[namespace]; t != nil {
		t.reserved = max(0, t.reserved-float64(reserved))
	}
	b.reserved = max(0, b.reserved-float64(reserved))
}

// Deferred counts the namespaces that have to wait for their next write.
func (b *Budget) Deferred(now time.Time) (n int) {
	for _, t := range b.tenants {
		if t.deferral.Until.After(now) {
			n++
		}
	}
	return n
}
