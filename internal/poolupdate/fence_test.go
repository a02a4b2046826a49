// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
)

// wrote counts the writes of a pool so far.
func (w *world) wrote(id lb.PoolID) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, call := range w.calls {
		if strings.Contains(call, " PUT "+id.Name+" ") || strings.HasSuffix(call, " PUT "+id.Name) {
			n++
		}
	}
	return n
}

// recorded spells what the ledger holds.
func (w *world) recorded(id lb.PoolID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.ledger[id.Name])
}

// loseAWrite has a write get lost that was to add n2, and then nobody wants n2 any more.
func (w *world) loseAWrite(id lb.PoolID) {
	w.loses(id, "n1=10.0.0.1 n2=10.0.0.2", "n1=10.0.0.1")
}

// loses has a write get lost that was to bring these members, and then others are wanted.
func (w *world) loses(id lb.PoolID, members, then string) {
	w.failing("PUT", 1, fault.Answer{OutcomeUnknown: true})
	w.change(id, members)
	w.wait(time.Second)
	w.change(id, then)
	w.wait(interval + 5*time.Second)
}

// Where Azure keeps the etag of a pool that is written as it is, nothing is fenced off: the record
// stays until anything has changed the etag, people are told, and the pool is not written again.
func TestWithoutANewEtagTheRecordStays(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		inDriftingWorld(t, 3, period, func(w *world) {
			w.keeps = keeps
			w.level(web)
			w.loseAWrite(web)
			last := w.reports[len(w.reports)-1]
			want, later := "[10.0.0.1]", 1
			if keeps {
				want, later = "[10.0.0.1 10.0.0.2]", 6
			}
			if last.Outcome != poolwrite.Unchanged || last.MayLand != keeps || w.recorded(web) != want {
				t.Fatalf("keeps %v: %s, may land: %v, the ledger holds %s", keeps, last.Outcome, last.MayLand, w.recorded(web))
			}
			if known := w.standing(web).level != nil; known == keeps {
				t.Errorf("keeps %v: known to be level: %v", keeps, known)
			}
			w.set(func() { w.calls, w.reports = nil, nil })
			w.wait(2*period - time.Minute)
			if n, looks := w.wrote(web), len(w.reports); n != 0 || looks < later || looks > later+1 {
				t.Errorf("keeps %v: %d looks, and %d writes: %q", keeps, looks, n, w.calls)
			}
			if w.recorded(web) != want {
				t.Errorf("keeps %v: the ledger holds %s", keeps, w.recorded(web))
			}
			if !keeps {
				return
			}
			// Anything that changes the etag ends it: the next look forgets n2.
			w.set(func() { w.pools[web.Key()].Etag = "another" })
			w.wait(period)
			if last := w.reports[len(w.reports)-1]; last.MayLand || w.wrote(web) > 0 || w.recorded(web) != "[10.0.0.1]" {
				t.Errorf("may land: %v, %d writes, the ledger holds %s", last.MayLand, w.wrote(web), w.recorded(web))
			}
		})
	}
}

// What lands after all is found by the look, and taken out again, for the record has it.
func TestWhatLandsAfterAllIsTakenBackByALook(t *testing.T) {
	for landsAfter, within := range map[time.Duration]time.Duration{30 * time.Second: 2 * time.Minute, 5 * time.Minute: 6 * time.Minute} {
		inDriftingWorld(t, 3, period, func(w *world) {
			w.keeps = true
			w.level(web)
			w.loseAWrite(web)
			w.wait(landsAfter)
			w.set(func() {
				p := w.pools[web.Key()]
				p.Addresses, p.Etag = addresses("n1=10.0.0.1 n2=10.0.0.2"), nextEtag(p.Etag)
			})
			w.wait(within)
			w.expectPool(web, "n1=10.0.0.1")
			if got := w.recorded(web); got != "[10.0.0.1]" {
				t.Errorf("the ledger holds %s", got)
			}
		})
	}
}

// The next process knows of a lost write by the record alone. It writes the pool as it is, once.
func TestTheNextProcessWritesOnceAndKeepsTheRecord(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.keeps = true
		w.level(web)
		w.set(func() { w.ledger["web"] = append(w.ledger["web"], netip.MustParseAddr("10.0.0.2")) })
		w.hold() // for good: this process ends here
		defer w.die()()
		w.look(web, "n1=10.0.0.1")
		w.wait(3 * period)
		if n := w.wrote(web); n != 1 || w.recorded(web) != "[10.0.0.1 10.0.0.2]" {
			t.Errorf("%d writes, the ledger holds %s: %q", n, w.recorded(web), w.calls)
		}
	})
}

// Whoever deletes a BackendPool does not wait for ever: what is not wanted any more, and has not
// landed within the longest attempt, is given up.
func TestARecordOutlivesNoDeletion(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.keeps = true
		w.level(web)
		w.loseAWrite(web)
		w.set(func() { w.pool(web, ""); w.pools[web.Key()].Etag = "9" })
		w.set(func() { w.ledger["web"] = []netip.Addr{netip.MustParseAddr("10.0.0.2")} })
		w.hold() // for good: this process ends here
		defer w.die()()
		w.look(web, "")
		w.wait(poolwrite.RecordOutlives - time.Minute)
		if got := w.recorded(web); got != "[10.0.0.2]" {
			t.Errorf("the ledger holds %s", got)
		}
		w.wait(period)
		if got := w.recorded(web); got != "[]" {
			t.Errorf("the ledger holds %s after %s", got, period+poolwrite.RecordOutlives)
		}
	})
}

// A pool that is Failed is written at each look until it is not, whatever its etag does.
func TestAFailedPoolIsWrittenOnceALook(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.keeps = true
		w.level(web)
		w.set(func() { w.pools[web.Key()].Provisioning = lb.Failed })
		w.wait(period)
		if n := w.wrote(web); n != 1 || w.pools[web.Key()].Provisioning != lb.Succeeded {
			t.Errorf("%d writes", n)
		}
		w.expectReports("web Unchanged")
	})
}

// Of network interfaces the record of admin states stays in the same way.
func TestWithoutANewEtagTheRecordOfInterfacesStays(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.keeps = true
		w.interfaces(web, "nic-n1")
		w.failing("PUT", 1, fault.Answer{OutcomeUnknown: true})
		w.drain(web, "n1=10.0.0.1/Down")
		w.wait(500 * time.Millisecond)
		w.drain(web, "n1=10.0.0.1")
		w.wait(2 * interval)
		w.expectDown("10.0.0.1")
		w.set(func() { w.pools[web.Key()].Etag = "another" })
		w.drain(web, "n1=10.0.0.1")
		w.wait(interval)
		w.expectDown("")
	})
}
