// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
)

// wrote returns the number of writes of a pool.
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

// recorded formats the record of a pool.
func (w *world) recorded(id lb.PoolID) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprint(w.ledger[id.Name])
}

// loseAWrite loses the response of a write that adds n2, which is then unwanted.
func (w *world) loseAWrite(id lb.PoolID) {
	w.loses(id, "n1=10.0.0.1 n2=10.0.0.2", "n1=10.0.0.1")
}

// loses loses the response of a write of members, after which other members are wanted.
func (w *world) loses(id lb.PoolID, members, then string) {
	w.failing("PUT", 1, armerror.Failure{ResultUnknown: true})
	w.change(id, members)
	w.wait(time.Second)
	w.change(id, then)
	w.wait(interval + 5*time.Second)
}

// If Azure keeps the etag of a rewritten pool, nothing is invalidated: the record is kept until the
// etag changes, that is reported, and the pool is not written again.
func TestWithoutANewEtagTheRecordStays(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		inDriftingWorld(t, 3, period, func(w *world) {
			w.keeps = keeps
			w.inSync(web)
			w.loseAWrite(web)
			last := w.reports[len(w.reports)-1]
			want, later := "[10.0.0.1]", 1
			if keeps {
				want, later = "[10.0.0.1 10.0.0.2]", 6
			}
			if last.Outcome != diff.Unchanged || last.HasPendingWrite != keeps || w.recorded(web) != want {
				t.Fatalf("keeps %v: %s, may land: %v, the ledger holds %s", keeps, last.Outcome, last.HasPendingWrite, w.recorded(web))
			}
			if known := w.standing(web).syncedFingerprint != nil; known == keeps {
				t.Errorf("keeps %v: known to be in sync: %v", keeps, known)
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
			// Any etag change ends it: the next check forgets n2.
			w.set(func() { w.pools[web.Key()].Etag = "another" })
			w.wait(period)
			if last := w.reports[len(w.reports)-1]; last.HasPendingWrite || w.wrote(web) > 0 || w.recorded(web) != "[10.0.0.1]" {
				t.Errorf("may land: %v, %d writes, the ledger holds %s", last.HasPendingWrite, w.wrote(web), w.recorded(web))
			}
		})
	}
}

// What lands late is found by the check and removed, because it is recorded.
func TestLateWriteIsRevertedByAResync(t *testing.T) {
	for landsAfter, within := range map[time.Duration]time.Duration{30 * time.Second: 2 * time.Minute, 5 * time.Minute: 6 * time.Minute} {
		inDriftingWorld(t, 3, period, func(w *world) {
			w.keeps = true
			w.inSync(web)
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

// The next process knows of a lost write from the record alone. It rewrites the pool once.
func TestTheNextProcessWritesOnceAndKeepsTheRecord(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.keeps = true
		w.inSync(web)
		w.set(func() { w.ledger["web"] = append(w.ledger["web"], netip.MustParseAddr("10.0.0.2")) })
		w.hold() // never released: the process ends here
		defer w.die()()
		w.look(web, "n1=10.0.0.1")
		w.wait(3 * period)
		if n := w.wrote(web); n != 1 || w.recorded(web) != "[10.0.0.1 10.0.0.2]" {
			t.Errorf("%d writes, the ledger holds %s: %q", n, w.recorded(web), w.calls)
		}
	})
}

// Deletion of a BackendPool does not wait forever: unwanted addresses that have not landed within
// the longest attempt are dropped.
func TestARecordOutlivesNoDeletion(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.keeps = true
		w.inSync(web)
		w.loseAWrite(web)
		w.set(func() { w.pool(web, ""); w.pools[web.Key()].Etag = "9" })
		w.set(func() { w.ledger["web"] = []netip.Addr{netip.MustParseAddr("10.0.0.2")} })
		w.hold() // never released: the process ends here
		defer w.die()()
		w.look(web, "")
		w.wait(diff.PendingWriteTTL - time.Minute)
		if got := w.recorded(web); got != "[10.0.0.2]" {
			t.Errorf("the ledger holds %s", got)
		}
		w.wait(period)
		if got := w.recorded(web); got != "[]" {
			t.Errorf("the ledger holds %s after %s", got, period+diff.PendingWriteTTL)
		}
	})
}

// A Failed pool is rewritten at each check until it is not, whatever its etag.
func TestAFailedPoolIsWrittenOnceALook(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.keeps = true
		w.inSync(web)
		w.set(func() { w.pools[web.Key()].Provisioning = lb.Failed })
		w.wait(period)
		if n := w.wrote(web); n != 1 || w.pools[web.Key()].Provisioning != lb.Succeeded {
			t.Errorf("%d writes", n)
		}
		w.expectReports("web Unchanged")
	})
}

// The record of admin states of network interfaces is kept in the same way.
func TestWithoutANewEtagTheRecordOfInterfacesStays(t *testing.T) {
	inAdminWorld(t, func(w *world) {
		w.keeps = true
		w.interfaces(web, "nic-n1")
		w.failing("PUT", 1, armerror.Failure{ResultUnknown: true})
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
