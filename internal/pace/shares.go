// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Parts of Weir's writes.
const (
	// calmPart may be used before any namespace is limited.
	calmPart = 0.5
	// reservePart is left for namespaces below their fair share, so that they never wait.
	reservePart = 0.2
	// floorPart is guaranteed to each namespace's Services.
	floorPart = 0.04
)

// minWrites is guaranteed to Services in five minutes, however small Weir's share is.
const minWrites = 50

const (
	// waitsFor is how long a namespace counts as waiting.
	waitsFor = 10 * time.Second
	// maxDeferral is the longest time until another attempt.
	maxDeferral = time.Minute
	// seenFor is how long a namespace counts as present. Its pools and Services are checked more
	// often.
	seenFor = 24 * time.Hour
)

type tenant struct {
	window   window
	services window    // for Services only
	wrote    time.Time // last write
	reserved float64   // for writes in progress
	waits    time.Time // counts as waiting until then
	deferral Deferral
	pools    time.Time // deferral of the first of its pools
}

func (t *tenant) wait(now time.Time) {
	if until := now.Add(waitsFor); until.After(t.waits) {
		t.waits = until
	}
}

type sighting struct {
	namespace string
	at        time.Time
}

// see records that a namespace has a Service or pool.
func (b *Budget) see(namespace string, now time.Time) {
	if b.seen[0].namespace != namespace {
		b.seen[1] = b.seen[0]
	}
	b.seen[0] = sighting{namespace, now}
}

func (b *Budget) alone(namespace string, now time.Time) bool {
	for _, s := range b.seen {
		if s.namespace != namespace && !s.at.IsZero() && now.Sub(s.at) < seenFor {
			return false
		}
	}
	return true
}

// Deferral is why a namespace's Services or pools wait. Zero is none.
type Deferral struct {
	Namespace string
	// Writes in five minutes: the namespace's, its share, all of Weir's, and Weir's maximum.
	Used, Share, Spent, Most float64
	Until                    time.Time
}

// String describes the deferral.
func (d Deferral) String() string {
	return fmt.Sprintf("namespace %s used %.0f of %.0f writes in five minutes, and its share is %.0f; all of Weir used %.0f; next write at %s",
		d.Namespace, d.Used, d.Most, d.Share, d.Spent, d.Until.UTC().Format(time.RFC3339))
}

func (b *Budget) tenant(namespace string) *tenant {
	t := b.tenants[namespace]
	if t == nil {
		t = &tenant{}
		b.tenants[namespace] = t
	}
	return t
}

// forServices is Weir's writes for Services in five minutes.
func (b *Budget) forServices() float64 { return max(b.share*windowWrites, minWrites) }

// WroteFor counts a write for Services, divided among their namespaces.
func (b *Budget) WroteFor(namespaces []string, now time.Time) {
	b.WroteForPools(namespaces, now)
	for _, n := range namespaces {
		b.tenant(n).services.count(now, 1/float64(len(namespaces)))
	}
}

// WroteForPools counts a pool update, divided among the namespaces.
func (b *Budget) WroteForPools(namespaces []string, now time.Time) {
	b.dropIdleTenants(now)
	for _, n := range namespaces {
		t := b.tenant(n)
		t.window.count(now, 1/float64(len(namespaces)))
		t.wrote = now
	}
}

// dropIdleTenants drops inactive namespaces once per slot.
func (b *Budget) dropIdleTenants(now time.Time) {
	if slot := slotOf(now); slot != b.dropped {
		b.dropped = slot
		maps.DeleteFunc(b.tenants, func(_ string, t *tenant) bool { return !t.active(now) && t.reserved == 0 })
	}
}

func (t *tenant) active(now time.Time) bool {
	return t.waits.After(now) || !t.wrote.IsZero() && now.Sub(t.wrote) < windowLasts+slotLasts
}

// fairShare returns a namespace's max-min fair share, and whether others wait for a write.
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

// room returns the writes available to a namespace's Services. After rejections there is no
// guaranteed floor. Without other namespaces, pool updates do not count: their pace is meant to use
// most writes.
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

// DeferPools returns the deferrals of the last of due pool updates, as far as there is no room;
// none within the share or without other namespaces.
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
	total := all * calmPart // for all namespaces
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

// freeOf returns the early writes that a namespace's share allows its pools if owed more per second
// follow, and the rest of the share. bounded is false if the share is not limiting.
func (b *Budget) freeOf(namespace string, owed float64, now time.Time) (free, left float64, bounded bool) {
	t := b.tenants[namespace]
	if t == nil || b.alone(namespace, now) || t.window.spent(now) < b.forServices()*floorPart {
		return 0, 0, false
	}
	share, _ := b.fairShare(t, now)
	share = max(share, b.forServices()*floorPart)
	return t.window.free(now, share, owed), max(0, share-t.window.spent(now)), true
}

// Defer returns why a namespace's Services have to wait, if they do. A deferral does not change
// before it ends.
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

// ends returns when there is room again without further writes.
func (b *Budget) ends(t *tenant, share float64, now time.Time) time.Time {
	all := b.forServices()
	at := t.window.below(share-1, now)
	if free := b.window.below(all-1, now); free.After(at) {
		at = free
	}
	if unreserved := b.window.below(all*(1-reservePart)-1, now); unreserved.Before(at) {
		at = unreserved
	}
	if last := now.Add(maxDeferral); at.After(last) {
		at = last
	}
	if first := now.Add(slotLasts); at.Before(first) {
		at = first
	}
	return at
}

// Reserve reserves up to want writes for a namespace's Services, as far as there is room, but at
// least one. Release them once made.
func (b *Budget) Reserve(namespace string, want int, rejected bool, now time.Time) int {
	t := b.tenant(namespace)
	granted := max(1, min(want, int(b.room(namespace, rejected, now))))
	t.reserved += float64(granted)
	b.reserved += float64(granted)
	return granted
}

// Release ends a reservation.
func (b *Budget) Release(namespace string, reserved int) {
	if t := b.tenants[namespace]; t != nil {
		t.reserved = max(0, t.reserved-float64(reserved))
	}
	b.reserved = max(0, b.reserved-float64(reserved))
}

// Deferred counts the waiting namespaces.
func (b *Budget) Deferred(now time.Time) (n int) {
	for _, t := range b.tenants {
		if t.deferral.Until.After(now) || t.pools.After(now) {
			n++
		}
	}
	return n
}
