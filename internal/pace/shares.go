// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Parts of what Weir may write in five minutes.
const (
	// calmPart is free for all: below it no namespace is limited.
	calmPart = 0.5
	// reservePart is for namespaces that have used less than their fair share: one that needs a write now has
	// it, whatever another one has used.
	reservePart = 0.2
	// floorPart is for the Services of each namespace, even if pools and nodes have used up all of Weir's writes.
	floorPart = 0.04
)

// minWrites is what Services may be written in five minutes, however small the share of Weir is.
const minWrites = 50

const (
	// waitsFor is how long a namespace counts as one that waits after it last needed a write.
	waitsFor = 10 * time.Second
	// maxDeferral is the longest time until the next try.
	maxDeferral = time.Minute
	// seenFor is how long a namespace counts as one of the cluster after it was seen last. Pools are looked at, and
	// Services compared, more often.
	seenFor = 24 * time.Hour
)

// tenant is one namespace: its writes in the last five minutes, for Services and for updates of pools.
type tenant struct {
	window   window
	services window    // those for Services
	wrote    time.Time // the last one
	reserved float64   // for what is being written now
	waits    time.Time // until when it counts as one that waits
	deferral Deferral
	pools    time.Time // until when the first of its pools is deferred
}

// wait marks a namespace that needs a write.
func (t *tenant) wait(now time.Time) {
	if until := now.Add(waitsFor); until.After(t.waits) {
		t.waits = until
	}
}

// sighting is when a namespace was seen last.
type sighting struct {
	namespace string
	at        time.Time
}

// see records that a namespace has a Service or a pool.
func (b *Budget) see(namespace string, now time.Time) {
	if b.seen[0].namespace != namespace {
		b.seen[1] = b.seen[0]
	}
	b.seen[0] = sighting{namespace, now}
}

// alone reports whether no other namespace has Services or pools.
func (b *Budget) alone(namespace string, now time.Time) bool {
	for _, s := range b.seen {
		if s.namespace != namespace && !s.at.IsZero() && now.Sub(s.at) < seenFor {
			return false
		}
	}
	return true
}

// Deferral is why the Services or the pools of a namespace wait for their next write. The zero value is none.
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
	b.WroteForPools(namespaces, now)
	for _, n := range namespaces {
		b.tenant(n).services.count(now, 1/float64(len(namespaces)))
	}
}

// WroteForPools counts an update of pools of these namespaces, a part for each.
func (b *Budget) WroteForPools(namespaces []string, now time.Time) {
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

// fairShare returns the share of a namespace, and whether another one waits for a write. What others leave of their
// shares is divided again.
func (b *Budget) fairShare(t *tenant, now time.Time) (share float64, othersWait bool) {
	var used []float64
	for _, other := range b.tenants {
		if other != t && other.active(now) {
			used = append(used, other.window.spent(now)+other.reserved)
			othersWait = othersWait || other.waits.After(now)
		}
	}
	slices.Sort(used)
	left := b.forServices() * (1 - reservePart)
	for i, u := range used {
		share = left / float64(len(used)-i+1)
		if u >= share {
			return share, othersWait
		}
		left -= u
	}
	return left, othersWait
}

// room returns how many writes may be made for the Services of a namespace now. It has no floor if Azure has just
// rejected what it wants. Without neighbors updates of its pools do not count: their pace uses most writes on purpose.
func (b *Budget) room(namespace string, rejected bool, now time.Time) float64 {
	t := b.tenant(namespace)
	all := b.forServices()
	free, used, services := all-b.window.spent(now)-b.reserved, t.window.spent(now)+t.reserved, t.services.spent(now)+t.reserved
	share, othersWait := b.fairShare(t, now)
	if b.alone(namespace, now) {
		used = services
	}
	room := max(min(share-used, free), free-all*(1-calmPart))
	if !othersWait {
		room = max(room, free-all*reservePart)
	}
	if !rejected {
		room = max(room, all*floorPart-services)
	}
	return room
}

// DeferPools returns the deferrals of those updates of pools of a namespace for which there is no room: the last ones
// of so many that are due. A namespace within its share has none, whatever is left; one without neighbors has none.
func (b *Budget) DeferPools(namespace string, due int, now time.Time) []Deferral {
	b.dropIdleTenants(now)
	t, all := b.tenant(namespace), b.forServices()
	t.wait(now)
	used, spent := t.window.spent(now)+t.reserved, b.window.spent(now)+b.reserved
	if b.alone(namespace, now) || max(all*floorPart-used, all*calmPart-spent) >= float64(due) {
		return nil
	}
	share, othersWait := b.fairShare(t, now)
	share = max(share, all*floorPart)
	total := all * calmPart // of all namespaces
	if !othersWait {
		total = all * (1 - reservePart)
	}
	var deferred []Deferral
	for n := max(0, int(max(share-used, total-spent))) + 1; n <= due; n++ {
		until := t.window.below(share-float64(n), now)
		if at := b.window.below(total-float64(n), now); at.Before(until) {
			until = at
		}
		if first := now.Add(slotLasts); until.Before(first) {
			until = first
		}
		deferred = append(deferred, Deferral{Namespace: namespace, Used: used, Share: share, Spent: spent, Most: all, Until: until})
	}
	if len(deferred) > 0 {
		t.pools = deferred[0].Until
	}
	return deferred
}

// freeOf returns how many early writes the share of a namespace leaves for its pools if so many writes a second are
// owed to them, and what is left of that share; false if it does not bound them.
func (b *Budget) freeOf(namespace string, owed float64, now time.Time) (free, left float64, bounded bool) {
	t := b.tenants[namespace]
	if t == nil || b.alone(namespace, now) || t.window.spent(now) < b.forServices()*floorPart {
		return 0, 0, false
	}
	share, _ := b.fairShare(t, now)
	share = max(share, b.forServices()*floorPart)
	return t.window.free(now, share, owed), max(0, share-t.window.spent(now)), true
}

// Defer returns why no write for the Services of a namespace may be made now; false if one may. The deferral
// is the same until its time.
func (b *Budget) Defer(namespace string, rejected bool, now time.Time) (Deferral, bool) {
	b.dropIdleTenants(now)
	b.see(namespace, now)
	t := b.tenant(namespace)
	if t.deferral.Until.After(now) {
		return t.deferral, true
	}
	t.wait(now)
	if b.room(namespace, rejected, now) >= 1 {
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
	got := max(1, min(want, int(b.room(namespace, rejected, now))))
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
		if t.deferral.Until.After(now) || t.pools.After(now) {
			n++
		}
	}
	return n
}
