// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Parts of Weir's writes.
const (
	// unlimitedShare may be used before any namespace is limited.
	unlimitedShare = 0.5
	// reservedShare is left for namespaces below their fair share, so that they never wait.
	reservedShare = 0.2
	// minimumShare is guaranteed to each namespace's Services.
	minimumShare = 0.04
)

// minWrites is guaranteed to Services in five minutes, however small Weir's share is.
const minWrites = 50

const (
	// waitTTL is how long a namespace counts as waiting.
	waitTTL = 10 * time.Second
	// serviceRecheck is the longest time until a deferred Service is checked again.
	serviceRecheck = time.Minute
	// namespaceTTL is how long a namespace counts as present. Its pools and Services are checked more
	// often.
	namespaceTTL = 24 * time.Hour
)

type namespaceUsage struct {
	window             window
	serviceWindow      window // for Services only
	lastWriteAt        time.Time
	reserved           float64   // for writes in progress
	waitingUntil       time.Time // counts as waiting until then
	deferral           Deferral
	poolsDeferredUntil time.Time // deferral of the first of its pools
}

func (n *namespaceUsage) markWaiting(now time.Time) {
	if until := now.Add(waitTTL); until.After(n.waitingUntil) {
		n.waitingUntil = until
	}
}

type namespaceSeen struct {
	namespace string
	at        time.Time
}

// recordNamespace records that a namespace has a Service or pool.
func (b *Budget) recordNamespace(namespace string, now time.Time) {
	if b.lastSeen[0].namespace != namespace {
		b.lastSeen[1] = b.lastSeen[0]
	}
	b.lastSeen[0] = namespaceSeen{namespace, now}
}

func (b *Budget) isOnlyNamespace(namespace string, now time.Time) bool {
	for _, s := range b.lastSeen {
		if s.namespace != namespace && !s.at.IsZero() && now.Sub(s.at) < namespaceTTL {
			return false
		}
	}
	return true
}

// Deferral is why a namespace's Services or pools wait. Zero is none.
type Deferral struct {
	Namespace string
	// Writes in five minutes: the namespace's, its share, all of Weir's, and Weir's maximum.
	Used, Share, TotalUsed, Max float64
	// Until is the next check. RoomAt is when a write is possible if nothing more is written.
	Until, RoomAt time.Time
	// Cause is why Weir's maximum was lowered, at LoweredAt; empty if it was not.
	Cause     string
	LoweredAt time.Time
}

// String describes the deferral.
func (d Deferral) String() string {
	text := fmt.Sprintf("namespace %s may send no write before %s: it used %.0f of its %.0f writes in five minutes, and all of Weir %.0f of %.0f",
		d.Namespace, d.RoomAt.UTC().Format(time.RFC3339), d.Used, d.Share, d.TotalUsed, d.Max)
	if d.Cause != "" {
		text += fmt.Sprintf(", lowered at %s: %s", d.LoweredAt.UTC().Format(time.RFC3339), d.Cause)
	}
	return text
}

func (b *Budget) usageOf(namespace string) *namespaceUsage {
	t := b.namespaces[namespace]
	if t == nil {
		t = &namespaceUsage{}
		b.namespaces[namespace] = t
	}
	return t
}

// maxServiceWrites is Weir's writes for Services in five minutes.
func (b *Budget) maxServiceWrites() float64 { return max(b.fleet.current*windowWrites, minWrites) }

// CountServiceWrite counts a write for Services, divided among their namespaces.
func (b *Budget) CountServiceWrite(namespaces []string, now time.Time) {
	b.CountPoolWrite(namespaces, now)
	for _, n := range namespaces {
		b.usageOf(n).serviceWindow.addWrites(now, 1/float64(len(namespaces)))
	}
}

// CountPoolWrite counts a pool update, divided among the namespaces.
func (b *Budget) CountPoolWrite(namespaces []string, now time.Time) {
	b.removeIdleNamespaces(now)
	for _, n := range namespaces {
		t := b.usageOf(n)
		t.window.addWrites(now, 1/float64(len(namespaces)))
		t.lastWriteAt = now
	}
}

// removeIdleNamespaces drops inactive namespaces once per slot.
func (b *Budget) removeIdleNamespaces(now time.Time) {
	if slot := slotIndex(now); slot != b.prunedSlot {
		b.prunedSlot = slot
		maps.DeleteFunc(b.namespaces, func(_ string, t *namespaceUsage) bool { return !t.isActive(now) && t.reserved == 0 })
	}
}

func (n *namespaceUsage) isActive(now time.Time) bool {
	return n.waitingUntil.After(now) || !n.lastWriteAt.IsZero() && now.Sub(n.lastWriteAt) < windowLength+slotLength
}

// computeShare returns a namespace's max-min fair share, and whether others wait for a write.
func (b *Budget) computeShare(t *namespaceUsage, now time.Time) (share float64, othersWait bool) {
	var used []float64
	for _, other := range b.namespaces {
		if other != t && other.isActive(now) {
			used = append(used, other.window.countWrites(now)+other.reserved)
			othersWait = othersWait || other.waitingUntil.After(now)
		}
	}
	slices.Sort(used)
	remaining := b.maxServiceWrites() * (1 - reservedShare)
	for i, u := range used {
		share = remaining / float64(len(used)-i+1)
		if u >= share {
			return share, othersWait
		}
		remaining -= u
	}
	return remaining, othersWait
}

// availableWrites returns the writes available to a namespace's Services. After rejections there is no
// guaranteed floor. Without other namespaces, pool updates do not count: their pace is meant to use
// most writes.
func (b *Budget) availableWrites(namespace string, rejected bool, now time.Time) float64 {
	t := b.usageOf(namespace)
	writes := b.maxServiceWrites()
	free, used, services := writes-b.window.countWrites(now)-b.reserved, t.window.countWrites(now)+t.reserved, t.serviceWindow.countWrites(now)+t.reserved
	share, othersWait := b.computeShare(t, now)
	if b.isOnlyNamespace(namespace, now) {
		used = services
	}
	available := max(min(share-used, free), free-writes*(1-unlimitedShare))
	if !othersWait {
		available = max(available, free-writes*reservedShare)
	}
	if !rejected {
		available = max(available, writes*minimumShare-services)
	}
	return available
}

// DeferPools returns the deferrals of the last of due pool updates, as far as there is no room;
// none within the share or without other namespaces.
func (b *Budget) DeferPools(namespace string, due int, now time.Time) []Deferral {
	b.removeIdleNamespaces(now)
	t, writes := b.usageOf(namespace), b.maxServiceWrites()
	t.markWaiting(now)
	used, spent := t.window.countWrites(now)+t.reserved, b.window.countWrites(now)+b.reserved
	if b.isOnlyNamespace(namespace, now) || max(writes*minimumShare-used, writes*unlimitedShare-spent) >= float64(due) {
		return nil
	}
	share, othersWait := b.computeShare(t, now)
	share = max(share, writes*minimumShare)
	total := writes * unlimitedShare // for all namespaces
	if !othersWait {
		total = writes * (1 - reservedShare)
	}
	var deferred []Deferral
	for n := max(0, int(max(share-used, total-spent))) + 1; n <= due; n++ {
		until := t.window.timeBelow(share-float64(n), now)
		if at := b.window.timeBelow(total-float64(n), now); at.Before(until) {
			until = at
		}
		if first := now.Add(slotLength); until.Before(first) {
			until = first
		}
		deferred = append(deferred, b.newDeferral(Deferral{Namespace: namespace, Used: used, Share: share, TotalUsed: spent, Max: writes, Until: until, RoomAt: until}))
	}
	if len(deferred) > 0 {
		t.poolsDeferredUntil = deferred[0].Until
	}
	return deferred
}

// freePoolWrites returns the early writes that a namespace's share allows its pools if writes at reservedRate
// follow, and the rest of the share. bounded is false if the share is not limiting.
func (b *Budget) freePoolWrites(namespace string, reservedRate float64, now time.Time) (free, remaining float64, bounded bool) {
	t := b.namespaces[namespace]
	if t == nil || b.isOnlyNamespace(namespace, now) || t.window.countWrites(now) < b.maxServiceWrites()*minimumShare {
		return 0, 0, false
	}
	share, _ := b.computeShare(t, now)
	share = max(share, b.maxServiceWrites()*minimumShare)
	return t.window.freeWrites(now, share, reservedRate), max(0, share-t.window.countWrites(now)), true
}

// DeferService returns why a namespace's Services have to wait, if they do. A deferral does not change
// before it ends.
func (b *Budget) DeferService(namespace string, rejected bool, now time.Time) (Deferral, bool) {
	b.removeIdleNamespaces(now)
	b.recordNamespace(namespace, now)
	t := b.usageOf(namespace)
	if t.deferral.Until.After(now) {
		return t.deferral, true
	}
	t.markWaiting(now)
	if b.availableWrites(namespace, rejected, now) >= 1 {
		t.deferral = Deferral{}
		return Deferral{}, false
	}
	share, _ := b.computeShare(t, now)
	at := b.roomAt(t, share, now)
	if !t.deferral.RoomAt.After(now) { // otherwise it continues with the same text
		t.deferral = b.newDeferral(Deferral{
			Namespace: namespace, Used: t.window.countWrites(now), Share: share, TotalUsed: b.window.countWrites(now), Max: b.maxServiceWrites(), RoomAt: at,
		})
	}
	if t.deferral.Until = at; at.After(now.Add(serviceRecheck)) {
		t.deferral.Until = now.Add(serviceRecheck)
	}
	t.waitingUntil = t.deferral.Until.Add(waitTTL)
	return t.deferral, true
}

// newDeferral adds the cause of a lowered share.
func (b *Budget) newDeferral(d Deferral) Deferral {
	if b.fleet.isLowered() {
		d.Cause, d.LoweredAt = b.fleet.reason, b.fleet.loweredAt
	}
	return d
}

// roomAt returns when there is room again without further writes.
func (b *Budget) roomAt(t *namespaceUsage, share float64, now time.Time) time.Time {
	writes := b.maxServiceWrites()
	at := t.window.timeBelow(share-1, now)
	if free := b.window.timeBelow(writes-1, now); free.After(at) {
		at = free
	}
	if unreserved := b.window.timeBelow(writes*(1-reservedShare)-1, now); unreserved.Before(at) {
		at = unreserved
	}
	if first := now.Add(slotLength); at.Before(first) {
		at = first
	}
	return at
}

// ReserveWrites reserves up to want writes for a namespace's Services, as far as there is room, but at
// least one. Release them once made.
func (b *Budget) ReserveWrites(namespace string, want int, rejected bool, now time.Time) int {
	t := b.usageOf(namespace)
	granted := max(1, min(want, int(b.availableWrites(namespace, rejected, now))))
	t.reserved += float64(granted)
	b.reserved += float64(granted)
	return granted
}

// ReleaseWrites ends a reservation.
func (b *Budget) ReleaseWrites(namespace string, reserved int) {
	if t := b.namespaces[namespace]; t != nil {
		t.reserved = max(0, t.reserved-float64(reserved))
	}
	b.reserved = max(0, b.reserved-float64(reserved))
}

// CountDeferred counts the waiting namespaces.
func (b *Budget) CountDeferred(now time.Time) (n int) {
	for _, t := range b.namespaces {
		if t.deferral.Until.After(now) || t.poolsDeferredUntil.After(now) {
			n++
		}
	}
	return n
}
