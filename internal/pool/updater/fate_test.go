// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
)

// What Azure shows during a write may be rolled back: it proves nothing.
func TestPoolThatAzureStillUpdatesIsNotInSync(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.pool(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.pools[web.Key()].Provisioning = lb.Updating
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(10 * time.Second)
		for _, r := range w.reports {
			if r.InSync || r.Outcome != diff.Postponed {
				t.Fatalf("outcome %s, settled %v: nothing is known yet", r.Outcome, r.InSync)
			}
		}
		w.set(func() { // the write fails and Azure rolls it back
			w.pool(web, "n1=10.0.0.1")
			w.pools[web.Key()].Provisioning = lb.Failed
		})
		w.wait(interval)
		w.expectPool(web, "n1=10.0.0.1 n2=10.0.0.2")
	})
}

func TestAPoolWhoseLastWriteFailedIsWrittenOnceMore(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.pool(web, "n1=10.0.0.1")
		w.pools[web.Key()].Provisioning = lb.Failed
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		if etag := w.pools[web.Key()].Etag; etag != "2" {
			t.Errorf("etag %s: the pool was not written", etag)
		}
		w.expectReports("web Unchanged") // nothing to report to a Service
	})
}

// An address that was sent but not seen may still arrive. It remains in the record until a write
// has invalidated the lost one.
func TestLostWriteIsNotTakenForForeignWrite(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		lost := false
		w.set(func() {
			w.fail = func(call string, _ lb.PoolID) error {
				if call == "PUT" && !lost {
					lost = true
					return armerror.Classify(armerror.Failure{ResultUnknown: true}, errors.New("connection reset"))
				}
				return nil
			}
		})
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(time.Second)
		w.change(web, "n1=10.0.0.1") // n2 leaves again
		w.wait(2 * interval)
		if etag := w.pools[web.Key()].Etag; etag == "1" {
			t.Error("the lost write still has a valid etag")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if got := len(w.ledger["web"]); got != 1 {
			t.Errorf("%d addresses in the ledger, want n1 alone after the write that settled it", got)
		}
	})
}

// A gateway may have forwarded the write before it timed out.
func TestAWriteThatAGatewayGaveUpOnMayStillLand(t *testing.T) {
	for _, status := range []int{408, 500, 502, 503, 504, 400} {
		inWorld(t, 3, func(w *world) {
			w.inSync(web)
			w.failing("PUT", 1, armerror.Failure{Status: status})
			w.change(web, "")
			w.wait(time.Second)
			before := w.pools[web.Key()].Etag
			w.change(web, "n1=10.0.0.1") // which the pool still shows
			w.wait(10 * time.Second)
			if fenced := w.pools[web.Key()].Etag != before; fenced != (status != 400) {
				t.Errorf("after %d the etag that the write was guarded by was taken from it: %v", status, fenced)
			}
		})
	}
}

// The managed addresses of a pool are determined on takeover, not after a node was deleted.
func TestTakingAPoolIsRecordedEvenIfItOnlyRemoves(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1 n2=10.0.0.2")
		refused := false
		w.fail = func(call string, _ lb.PoolID) error {
			if call == "PUT" && !refused {
				refused = true
				return armerror.Classify(armerror.Failure{Status: 409}, errors.New("etag"))
			}
			return nil
		}
		w.set(func() { w.nodes[addresses("n2=10.0.0.2")[0].IP] = true })
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.set(func() { clear(w.nodes) }) // the nodes leave the cluster before the retry
		w.wait(2 * interval)
		w.expectPool(web, "n1=10.0.0.1")
	})
}

func TestALaneEndsWithItsLastPool(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		before := runtime.NumGoroutine()
		for i := range 200 {
			id := poolID("lb-"+string(rune('a'+i%26))+string(rune('a'+i/26)), "web")
			if w.lanes.IsInSync(id, 0) {
				t.Error("a pool that nobody knows is in sync")
			}
			w.change(id, "")
			w.wait(time.Second)
			w.lanes.Forget(id)
		}
		w.wait(time.Second)
		if n := runtime.NumGoroutine() - before; n > 5 {
			t.Errorf("%d goroutines are left of lanes without pools", n)
		}
		// A pool that is added again works.
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.expectPool(web, "n1=10.0.0.1")
		w.lanes.Forget(web)
		w.change(web, "n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectPool(web, "n2=10.0.0.2")
	})
}

// A lock request on an ending worker gets its successor, and two never coexist.
func TestALaneThatIsHeldDoesNotEnd(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		unlock, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.lanes.Forget(web)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		if _, err := w.lanes.Lock(ctx, web.LoadBalancer); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second holder: %v", err)
		}
		unlock()
		w.lanes.Forget(web)
		second, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		second()
	})
}
