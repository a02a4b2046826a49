// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

const (
	weirs   = windowWrites * DefaultShare // Weir's writes in five minutes
	floor   = weirs * minimumShare
	reserve = weirs * reservedShare
)

// spends makes a write for a namespace if allowed.
func (b *Budget) spends(namespace string, now time.Time) bool {
	if _, deferred := b.DeferService(namespace, false, now); deferred {
		return false
	}
	reserved := b.ReserveWrites(namespace, 1, false, now)
	b.CountWrite(now)
	b.CountServiceWrite([]string{namespace}, now)
	b.ReleaseWrites(namespace, reserved)
	return true
}

// Whatever namespaces want: one that has used little is never deferred; one that has used its fair
// share is deferred while others wait and half of the writes are used; none is deferred while usage
// is low; and unused writes are available to all.
func TestLawShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, now := NewBudget(DefaultShare, 30*time.Second), start
		namespaces := rapid.IntRange(1, 6).Draw(t, "namespaces")
		waits := map[string]time.Time{} // when each last wanted a write
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
			name := fmt.Sprint("n", rapid.IntRange(0, namespaces-1).Draw(t, "namespace"))
			for range rapid.SampledFrom([]int{1, 1, 5, 60}).Draw(t, "writes") {
				b.removeIdleNamespaces(now)
				tenant := *b.usageOf(name)
				used, spent := tenant.window.countWrites(now), b.window.countWrites(now)
				fresh := !tenant.deferral.Until.After(now)
				share, othersWait := b.computeShare(b.usageOf(name), now)
				wrote := b.spends(name, now)
				d := b.usageOf(name).deferral
				switch {
				case wrote && othersWait && spent > weirs*unlimitedShare && used > max(share, floor):
					t.Fatalf("%s writes beyond its share: %v used of %v, %v spent", name, used, share, spent)
				case wrote && spent >= weirs && used >= floor:
					t.Fatalf("%s writes beyond what Weir may: %v used, %v spent", name, used, spent)
				case !wrote && fresh && used < floor-1:
					t.Fatalf("%s is deferred with %v used", name, used)
				case !wrote && fresh && spent < weirs*unlimitedShare-1:
					t.Fatalf("%s is deferred though all is calm: %v spent", name, spent)
				case !wrote && fresh && !othersWait && spent < weirs-reserve-1:
					t.Fatalf("%s is deferred though no other one waits: %v used, %v spent", name, used, spent)
				case !wrote && (!d.Until.After(now) || d.Until.After(now.Add(serviceRecheck)) || !strings.Contains(d.String(), name)):
					t.Fatalf("%s at %s", d, now)
				}
				waits[name] = now
			}
			for other, t := range b.namespaces {
				if !t.isActive(now) && now.Sub(waits[other]) > 2*windowLength {
					panic("an idle namespace is remembered")
				}
			}
		}
		b.removeIdleNamespaces(now.Add(2 * windowLength))
		if len(b.namespaces) > 0 {
			t.Fatalf("%d idle namespaces are remembered", len(b.namespaces))
		}
	})
}

// One namespace writes as fast as allowed. The first writes of another are never deferred, and
// while it continues, both get the same number.
func TestANewNamespaceHasItsShare(t *testing.T) {
	b, now := NewBudget(DefaultShare, 30*time.Second), start
	wrote := map[string][]time.Time{}
	second := func(names ...string) {
		now = now.Add(time.Second)
		for range 10 {
			for _, n := range names {
				if b.spends(n, now) {
					wrote[n] = append(wrote[n], now)
				}
			}
		}
	}
	for range 300 {
		second("busy")
	}
	if n := len(wrote["busy"]); float64(n) < weirs-reserve || float64(n) > weirs-reserve+10 {
		t.Errorf("alone it wrote %d times, want %v", n, weirs-reserve)
	}
	second("busy", "new")
	if len(wrote["new"]) != 10 {
		t.Errorf("the new one wrote %d times at once, want 10", len(wrote["new"]))
	}
	for range 900 {
		second("busy", "new")
	}
	lately := func(n string) int {
		return len(slices.DeleteFunc(slices.Clone(wrote[n]), func(at time.Time) bool { return now.Sub(at) >= windowLength }))
	}
	if busy, fresh := lately("busy"), lately("new"); float64(busy+fresh) > weirs || busy-fresh > 30 || fresh-busy > 30 {
		t.Errorf("in five minutes one wrote %d times, and the other %d times", busy, fresh)
	}
}

// Even if pools and nodes use up all writes, each namespace gets a few, unless Azure rejects what
// it wants.
func TestTheFloor(t *testing.T) {
	b, now := NewBudget(DefaultShare, 30*time.Second), start
	for range 600 {
		b.CountWrite(now)
	}
	n := 0
	for range 100 {
		if b.spends("shop", now) {
			n++
		}
	}
	if n != int(floor) {
		t.Errorf("%d writes, want %v", n, floor)
	}
	if _, deferred := b.DeferService("blog", true, now); !deferred {
		t.Error("what is rejected has a floor")
	}
	first, _ := b.DeferService("shop", false, now)
	if second, deferred := b.DeferService("shop", false, now.Add(first.Until.Sub(now)/2)); !deferred || second != first {
		t.Errorf("%+v, and then %+v: each change would be written into the status", first, second)
	}
	for _, share := range []float64{0, 0.01} {
		if b := NewBudget(share, 30*time.Second); !b.spends("shop", now) {
			t.Errorf("with a share of %v nothing is written for Services", share)
		}
	}
}

// A round reserves its writes, so that other load balancers do not use them.
func TestReservations(t *testing.T) {
	b, now := NewBudget(DefaultShare, 30*time.Second), start
	first := b.ReserveWrites("shop", 1000, false, now)
	if float64(first) != weirs-reserve {
		t.Errorf("%d are reserved, want %v", first, weirs-reserve)
	}
	if second := b.ReserveWrites("shop", 1000, false, now); second != int(floor) && second != 1 {
		t.Errorf("%d more are reserved", second)
	}
	b.ReleaseWrites("shop", first)
	if other := b.ReserveWrites("blog", 1000, false, now); float64(other) < weirs*unlimitedShare-1 {
		t.Errorf("after the release %d are reserved", other)
	}
}

// However a namespace varies its objects' specs and names, the number of its rejected writes is
// bounded, and no other namespace waits for them.
func TestLawRejections(t *testing.T) {
	reason := errors.New("rejected")
	rapid.Check(t, func(t *rapid.T) {
		var r Rejections
		now := start
		var times []time.Time
		of := map[string][]time.Time{}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			for range rapid.IntRange(1, 30).Draw(t, "objects") {
				name := fmt.Sprint("o", rapid.IntRange(0, rapid.SampledFrom([]int{1, 20, 1000}).Draw(t, "of")).Draw(t, "object"))
				spec := fmt.Sprint(rapid.IntRange(0, 1).Draw(t, "spec"), step)
				if until, err := r.ObjectRetryAt(name, func() string { return spec }, now); err != nil {
					if !until.After(now) || until.After(now.Add(maxRetryDelay)) {
						t.Fatalf("%s waits until %s at %s", name, until, now)
					}
					continue
				}
				if r.NamespaceRetryAt("shop", now).After(now) {
					continue
				}
				r.CountRejectedWrite("shop", 1, now)
				r.RecordRejection(name, spec, reason, now)
				times, of[name] = append(times, now), append(of[name], now)
			}
			if _, _, suspect := r.BatchLimit("blog", now); suspect || r.NamespaceRetryAt("blog", now).After(now) {
				t.Fatal("another namespace waits")
			}
		}
		within := func(tries []time.Time) (limit int) {
			for i := range tries {
				n := 0
				for _, at := range tries[i:] {
					if at.Sub(tries[i]) < windowLength {
						n++
					}
				}
				limit = max(limit, n)
			}
			return limit
		}
		if n := within(times); n > maxRejected+int(windowLength/rejectInterval) {
			t.Fatalf("%d rejected writes in five minutes", n)
		}
		for name, tries := range of {
			if n := within(tries); n > 8 { // pauses of 5, 10, 20, …, 320 s, each after at most one early retry
				t.Fatalf("%s was tried %d times in five minutes", name, n)
			}
		}
		r.CountRejectedWrite("else", 0, now.Add(time.Hour))
		if len(r.objects) > 0 || len(r.namespaces) != 1 {
			t.Fatalf("%d objects and %d namespaces are remembered", len(r.objects), len(r.namespaces))
		}
	})
}

// The first correction is tried at once, the next one after the pause; an accepted object has no
// pause.
func TestCorrections(t *testing.T) {
	var r Rejections
	reason := errors.New("rejected")
	waits := func(spec string, at time.Duration) time.Duration {
		until, err := r.ObjectRetryAt("shop/web", func() string { return spec }, start.Add(at))
		if err == nil {
			return 0
		}
		return until.Sub(start.Add(at))
	}
	check := func(spec string, at, want time.Duration) {
		t.Helper()
		if got := waits(spec, at); got != want {
			t.Errorf("%s after %s waits for %s, want %s", spec, at, got, want)
		}
	}
	r.RecordRejection("shop/web", "typo", reason, start)
	check("typo", 0, 5*time.Second)
	check("corrected", 0, 0)
	r.RecordRejection("shop/web", "corrected", reason, start)
	check("corrected", 0, 10*time.Second)
	check("another", 0, 10*time.Second)
	check("another", 10*time.Second, 0)
	r.RecordRejection("shop/web", "another", reason, start.Add(10*time.Second))
	check("another", 10*time.Second, 20*time.Second)
	check("last", 12*time.Second, 0)
	r.ClearRejection("shop/web")
	check("another", 12*time.Second, 0)
}

// The width is halved after a rejection, doubled after a success, and restored after a while.
func TestBatchLimit(t *testing.T) {
	var r Rejections
	want := func(at time.Duration, want int) {
		t.Helper()
		if got, _, suspect := r.BatchLimit("shop", start.Add(at)); got != want || suspect != (want > 0) {
			t.Errorf("after %s: %d together, suspect %t; want %d", at, got, suspect, want)
		}
	}
	want(0, 0)
	r.CountRejectedWrite("shop", 60, start)
	want(0, 30)
	r.CountRejectedWrite("shop", 30, start)
	want(0, 15)
	r.CountAcceptedWrite("shop")
	want(0, 30)
	r.CountRejectedWrite("shop", 1, start)
	want(0, 1)
	r.CountRejectedWrite("shop", 0, start.Add(time.Second))
	want(time.Second, 1)
	want(5*time.Second, 2)
	want(time.Minute, maxBatchSize)
	want(rejectionTTL+time.Second, 0)
}

// A hundred busy pools of one namespace delay another's pool no more than ten do.
func TestPoolsOfOneNamespaceShareItsPart(t *testing.T) {
	spacing := func(pools int) time.Duration {
		b, now := NewBudget(1, 30*time.Second), start
		for range 60 {
			now = now.Add(time.Second)
			for n := range pools {
				b.CountChange(lb.PoolKey(fmt.Sprint("busy", n)), "busy", now)
			}
			b.CountChange("pool", "shop", now)
		}
		for n := range pools { // what they are owed is not the point here
			a := b.pools[lb.PoolKey(fmt.Sprint("busy", n))]
			a.windowCount = 0
			a.recentCount = 30
			b.pools[lb.PoolKey(fmt.Sprint("busy", n))] = a
		}
		return b.PaceAt(now).ScheduleFor("pool").writeInterval
	}
	if few, many := spacing(2), spacing(100); many > few*11/10 {
		t.Errorf("beside two pools of a neighbor it is written each %s, beside a hundred each %s", few, many)
	}
}

// A deferral names the time of the next write and why Weir's share is lowered. Both stay while it continues, though it is
// checked every minute; once the namespace has room, a later one is new.
func TestADeferralKeepsItsTime(t *testing.T) {
	b, now := NewBudget(DefaultShare, 30*time.Second), start
	b.DeferService("blog", false, now) // another namespace
	for range 200 {
		b.CountWrite(now)
		b.CountServiceWrite([]string{"shop"}, now)
	}
	b.RecordThrottle(Throttle{Until: now.Add(20 * time.Second), Network: true}, now)
	first, deferred := b.DeferService("shop", false, now)
	if !deferred || first.RoomAt.Sub(now) <= 2*serviceRecheck || first.Until != now.Add(serviceRecheck) {
		t.Fatalf("%+v", first)
	}
	for _, want := range []string{"may send no write before " + first.RoomAt.UTC().Format(time.RFC3339), "lowered at " + start.UTC().Format(time.RFC3339) + ": 429 for the quota of Microsoft.Network"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("no %q in %q", want, first)
		}
	}
	second, deferred := b.DeferService("shop", false, first.Until)
	if !deferred || second.String() != first.String() || second.Until != first.Until.Add(serviceRecheck) {
		t.Errorf("it is now %q until %s, and was %q", second, second.Until, first)
	}
	later := first.RoomAt.Add(time.Minute)
	if d, deferred := b.DeferService("shop", false, later); deferred || b.usageOf("shop").deferral != (Deferral{}) {
		t.Errorf("still %q", d)
	}
}
