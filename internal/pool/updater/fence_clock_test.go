// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/internal/pool/diff"
)

// deleted is a pool that should be empty while the record holds n2, which a lost write of an
// earlier process may add.
func (w *world) deleted(id lb.PoolID) {
	w.set(func() {
		w.pool(id, "")
		w.ledger[id.Name], w.taken[id.Name] = []netip.Addr{netip.MustParseAddr("10.0.0.2")}, true
	})
	w.look(id, "")
}

// The lifetime of a record counts from when it was first kept, despite postponements.
func TestARecordOutlivesNoPostponement(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.keeps = true
		requested := 0
		w.set(func() {
			w.fail = func(call string, _ lb.PoolID) error {
				if call == "READ LEDGER" {
					if requested++; requested > 1 && requested%2 == 0 { // before each conclusive check
						return errors.New("no answer")
					}
				}
				return nil
			}
		})
		w.deleted(web)
		for range 30 { // one check per minute
			w.wait(time.Minute)
			w.look(web, "")
		}
		w.wait(time.Minute)
		if got := w.recorded(web); got != "[]" {
			t.Errorf("the ledger holds %s after half an hour", got)
		}
		postponed := 0
		for _, r := range w.reports {
			if r.Outcome == diff.Postponed {
				postponed++
			}
		}
		if postponed < 5 {
			t.Errorf("postponed %d times", postponed)
		}
	})
}

// Without drift checks, a pool that keeps a record is still checked after the longest attempt. That
// bounds its deletion, and what has landed is reverted.
func TestWithoutLooksAKeptRecordHasOne(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.keeps = true
		w.deleted(web)
		w.wait(diff.PendingWriteTTL - time.Minute)
		if got := w.recorded(web); got != "[10.0.0.2]" {
			t.Errorf("the ledger holds %s", got)
		}
		w.wait(2 * time.Minute)
		if got := w.recorded(web); got != "[]" {
			t.Errorf("the ledger holds %s", got)
		}
		w.set(func() { w.calls = nil })
		w.wait(100 * time.Hour)
		w.expectCalls()
	})
	for _, lands := range []bool{false, true} {
		inWorld(t, 3, func(w *world) {
			w.keeps = true
			w.inSync(web)
			w.inSync(api)
			w.loseAWrite(web)
			kept := w.reports[len(w.reports)-1]
			w.set(func() {
				w.calls = nil
				if p := w.pools[web.Key()]; lands {
					p.Addresses, p.Etag = addresses("n1=10.0.0.1 n2=10.0.0.2"), nextEtag(p.Etag)
				}
			})
			w.wait(100 * time.Hour)
			w.expectPool(web, "n1=10.0.0.1")
			if at := kept.At.Add(diff.PendingWriteTTL); !kept.NextCheckAt.Equal(at) {
				t.Errorf("to be looked at at %s, want %s", kept.NextCheckAt, at)
			}
			if n := len(w.calls); n > 2 || n < 1 {
				t.Errorf("landed %v: %q", lands, w.calls)
			}
		})
	}
}

// If Azure ignores If-Match, no etag invalidates a lost write: the record is kept as long as it may
// land, and what lands is reverted.
func TestWithoutIfMatchTheRecordStaysAWhile(t *testing.T) {
	for landsAfter, want := range map[time.Duration]string{0: "[10.0.0.1]", time.Minute: "[10.0.0.1]", 9 * time.Minute: "[10.0.0.1]"} {
		inWorldOf(t, Config{MaxRetries: 3, ResyncPeriod: period, Behaviour: behavior.Behavior{PoolIfMatch: behavior.Ignored}}, func(w *world) {
			w.inSync(web)
			w.loseAWrite(web)
			if last := w.reports[len(w.reports)-1]; !last.InSync || !last.HasPendingWrite || w.recorded(web) != "[10.0.0.1 10.0.0.2]" {
				t.Fatalf("%s, may land: %v, the ledger holds %s", last.Outcome, last.HasPendingWrite, w.recorded(web))
			}
			w.set(func() { w.calls = nil })
			w.wait(landsAfter)
			if landsAfter > 0 {
				w.set(func() {
					p := w.pools[web.Key()]
					p.Addresses, p.Etag = addresses("n1=10.0.0.1 n2=10.0.0.2"), nextEtag(p.Etag)
				})
			}
			w.wait(2 * period)
			w.expectPool(web, "n1=10.0.0.1")
			if last := w.reports[len(w.reports)-1]; last.HasPendingWrite || w.recorded(web) != want {
				t.Errorf("landed after %s: may land: %v, the ledger holds %s", landsAfter, last.HasPendingWrite, w.recorded(web))
			}
			if n := w.wrote(web); n > 1 {
				t.Errorf("landed after %s: %d writes: %q", landsAfter, n, w.calls)
			}
		})
	}
}

// The same if the next write is another change without n2.
func TestWithoutIfMatchAChangeForgetsNoLostWrite(t *testing.T) {
	inWorldOf(t, Config{MaxRetries: 3, ResyncPeriod: period, Behaviour: behavior.Behavior{PoolIfMatch: behavior.Ignored}}, func(w *world) {
		w.inSync(web)
		w.loses(web, "n1=10.0.0.1 n2=10.0.0.2", "n1=10.0.0.1 n3=10.0.0.3")
		if got := w.recorded(web); got != "[10.0.0.1 10.0.0.2 10.0.0.3]" {
			t.Errorf("the ledger holds %s", got)
		}
		w.wait(2 * time.Minute)
		w.set(func() { // the lost write, without n3
			p := w.pools[web.Key()]
			p.Addresses, p.Etag = addresses("n1=10.0.0.1 n2=10.0.0.2"), nextEtag(p.Etag)
		})
		w.wait(2 * period)
		w.expectPool(web, "n1=10.0.0.1 n3=10.0.0.3")
		if got := w.recorded(web); got != "[10.0.0.1 10.0.0.3]" {
			t.Errorf("the ledger holds %s: %s", got, fmt.Sprint(w.calls))
		}
	})
}
