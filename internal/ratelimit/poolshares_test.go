// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// updatesPool updates a pool of a namespace if there is room.
func (b *Budget) updatesPool(namespace string, now time.Time) bool {
	b.recordNamespace(namespace, now)
	if len(b.DeferPools(namespace, 1, now)) > 0 {
		return false
	}
	b.CountWrite(now)
	b.CountPoolWrite([]string{namespace}, now)
	return true
}

// Whatever namespaces want: an update within the namespace's share is never deferred. One beyond it
// is deferred while others wait, and while Weir has used all but the reserve. A deferral ends
// within the window, and exactly the updates without room are deferred.
func TestLawSharesOfPools(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, now := NewBudget(DefaultShare, 30*time.Second), start
		namespaces := rapid.IntRange(2, 6).Draw(t, "namespaces")
		for n := range namespaces {
			b.recordNamespace(fmt.Sprint("n", n), now)
		}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			name := fmt.Sprint("n", rapid.IntRange(0, namespaces-1).Draw(t, "namespace"))
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				b.spends(name, now)
				continue
			}
			for range rapid.SampledFrom([]int{1, 5, 60}).Draw(t, "writes") {
				tenant := b.usageOf(name)
				used, spent := tenant.window.countWrites(now), b.window.countWrites(now)
				share, othersWait := b.computeShare(tenant, now)
				share = max(share, floor)
				deferred := b.DeferPools(name, 1, now)
				switch {
				case len(deferred) > 0 && used < share-1:
					t.Fatalf("%s is deferred within its share: %v of %v", name, used, share)
				case len(deferred) > 0 && spent < weirs*unlimitedShare-1:
					t.Fatalf("%s is deferred though %v are spent", name, spent)
				case len(deferred) == 0 && used > share && spent > weirs*unlimitedShare && othersWait:
					t.Fatalf("%s writes beyond its share: %v of %v, %v spent", name, used, share, spent)
				case len(deferred) == 0 && used > share && spent > weirs-reserve:
					t.Fatalf("%s uses the reserve: %v of %v, %v spent", name, used, share, spent)
				}
				for _, d := range deferred {
					if !d.Until.After(now) || d.Until.After(now.Add(windowLength+slotLength)) || !strings.Contains(d.String(), name) {
						t.Fatalf("%s at %s", d, now)
					}
				}
				if !b.updatesPool(name, now) && len(b.DeferPools(name, 5, now)) != 5 {
					t.Fatalf("of five updates of %s only some are deferred", name)
				}
			}
		}
	})
}

// A hundred pools of one namespace are always due, and another namespace changes once in eleven
// seconds. The former use their share and what the latter leaves, and each update of the latter is
// made at once.
func TestManyPoolsLeaveWritesForANeighbor(t *testing.T) {
	for _, services := range []bool{false, true} {
		b, now := NewBudget(DefaultShare, 30*time.Second), start
		b.recordNamespace("shop", now)
		b.recordNamespace("blog", now)
		var written []time.Time
		for second := range 1200 {
			now = now.Add(time.Second)
			if second%11 == 0 && !b.updatesPool("blog", now) {
				t.Fatalf("after %d s the neighbor waits", second)
			}
			for range 100 {
				if services && b.spends("shop", now) || b.updatesPool("shop", now) {
					written = append(written, now)
				}
			}
			limit := weirs - reserve + 28 // the other namespace's
			if services {
				limit += floor
			}
			if n := b.window.countWrites(now); n > limit+1 {
				t.Fatalf("after %d s %v writes in five minutes, want %v at most", second, n, limit)
			}
		}
		if len(written) < int(weirs) {
			t.Errorf("the namespace has written %d times", len(written))
		}
	}
}

// A cluster with one namespace keeps the interval for each pool. Another namespace ends that for a
// day.
func TestANamespaceWithoutNeighborsIsNotDeferred(t *testing.T) {
	b, now := NewBudget(DefaultShare, 30*time.Second), start
	for range 600 {
		if !b.updatesPool("shop", now) {
			t.Fatal("alone it is deferred")
		}
	}
	b.recordNamespace("blog", now)
	if len(b.DeferPools("shop", 300, now)) != 300 {
		t.Error("it uses up what its neighbor needs")
	}
	if len(b.DeferPools("blog", 20, now)) > 0 {
		t.Error("its neighbor waits")
	}
	now = now.Add(namespaceTTL)
	for range 600 {
		if !b.updatesPool("shop", now) {
			t.Fatal("it is deferred though no other namespace was seen for a day")
		}
	}
}

// Services of a namespace with pools that have used up its share get the floor. Without other
// namespaces they get what is left.
func TestServicesBesideBusyPools(t *testing.T) {
	for _, alone := range []bool{false, true} {
		b, now := NewBudget(DefaultShare, 30*time.Second), start
		want := int(weirs * 0.1)
		if !alone {
			b.recordNamespace("blog", now)
			want = int(floor)
		}
		for b.window.countWrites(now) < 0.9*weirs && b.updatesPool("shop", now) {
		}
		n := 0
		for range 100 {
			if b.spends("shop", now) {
				n++
			}
		}
		if n != want {
			t.Errorf("alone %t: %d writes for Services, want %d", alone, n, want)
		}
	}
}

// Many pools of one namespace take no early writes from another's pool.
func TestEarlyWritesBesideManyPools(t *testing.T) {
	b, now, late := NewBudget(DefaultShare, 30*time.Second), start, 0
	for second := range 600 {
		now = now.Add(time.Second)
		for n := range 100 {
			b.CountChange(aPool(n), "shop", now)
			for range 3 {
				b.updatesPool("shop", now)
			}
		}
		if second%11 == 0 {
			b.CountChange("web", "blog", now)
			b.updatesPool("blog", now)
		}
		if apart := b.PaceAt(now).ScheduleFor("web").writeInterval; second > 60 && apart > 11*time.Second {
			late++
		}
	}
	if late > 20 { // while many writes expire at once
		t.Errorf("for %d s the neighbor is not written early", late)
	}
	if apart := b.PaceAt(now).ScheduleFor(aPool(0)).writeInterval; apart < 30*time.Second {
		t.Errorf("beyond its share a namespace is written early, each %s", apart)
	}
}
