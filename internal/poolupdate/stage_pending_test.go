// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// A load balancer write with a lost response may land after its change was reverted. A pool that
// seems in sync is then rewritten.
func TestALostWriteOfTheLoadBalancerIsFencedOff(t *testing.T) {
	for mayLand, writes := range map[bool]string{true: "2", false: "1"} {
		inTakingWorld(t, 3, func(w *world) {
			w.level(web)
			w.pool(api, "")
			w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
			unlock := w.hold()
			c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web, api))
			c.requeueAll(mayLand)
			unlock()
			w.change(web, "n1=10.0.0.1")                            // which the pool still shows
			w.set(func() { w.ledger["web"] = w.ledger["web"][:1] }) // so that only the etag reveals it
			w.wait(5 * time.Second)
			if etag := w.pools[web.Key()].Etag; etag != writes {
				t.Errorf("may land: %v, etag %s, want %s", mayLand, etag, writes)
			}
			w.expectReports("web Unchanged")
			if _, ok := w.putWhole(c.pools); ok == mayLand {
				t.Errorf("may land: %v, and landed: %v", mayLand, ok)
			}
			w.wait(2 * interval)
			w.set(func() { w.calls = nil })
			w.change(web, "n1=10.0.0.1")
			w.wait(interval)
			if mayLand && len(w.calls) > 1 {
				t.Errorf("fenced off once is enough: %q", w.calls)
			}
		})
	}
}

// While the result of the write is unknown, the pool must not count as in sync.
func TestAPoolWithALostWriteIsNotKnownToBeLevel(t *testing.T) {
	for mayLand := range map[bool]bool{true: true, false: false} {
		inTakingWorld(t, 3, func(w *world) {
			w.level(web)
			before := *w.standing(web).syncedFingerprint
			w.change(web, "n2=10.0.0.2")
			unlock := w.hold()
			w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web)).requeueAll(mayLand)
			w.lanes.RemoveService(poolschedule.ServiceName{Name: "web"})
			unlock()
			if w.lanes.IsInSync(web, before) == mayLand {
				t.Errorf("may land: %v, known to be level: %v", mayLand, !mayLand)
			}
		})
	}
}

// A load balancer write invalidates a lost pool write by changing the etag. If the pool shows
// otherwise, the worker writes it separately.
func TestACarrierFencesOffALostWriteOfThePool(t *testing.T) {
	for _, fences := range []bool{true, false} {
		inTakingWorld(t, 3, func(w *world) {
			w.level(web)
			w.failing("PUT", 1, fault.Failure{ResultUnknown: true})
			w.change(web, "")
			w.wait(time.Second)
			w.change(web, "n1=10.0.0.1")
			w.set(func() { w.calls, w.reports = nil, nil })
			unlock := w.hold()
			c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
			shown, _ := w.putWhole(c.pools)
			if !fences {
				shown[0].Etag = c.pools[0].Etag
				w.set(func() { w.pools[web.Key()].Etag = shown[0].Etag })
			}
			c.applyResult(w.t.Context(), shown)
			unlock()
			w.wait(time.Minute)
			if lost := w.standing(web).history.Writes.PendingEtag; lost != "" {
				t.Errorf("a lost write is still feared, by its etag %s", lost)
			}
			if etag := w.pools[web.Key()].Etag; etag != "2" {
				t.Errorf("etag %s, want one write of any kind: %q", etag, w.calls)
			}
			w.expectReports("web Unchanged Updated:web")
			if alone := len(w.calls) > 1; alone == fences {
				t.Errorf("fenced off by the load balancer's write: %v, and yet %q", fences, w.calls)
			}
		})
	}
}

// A pool in sync gets no change, so the result of the write does not matter and no etag has to
// prove anything.
func TestAPoolThatWasLevelNeedsNoProof(t *testing.T) {
	for _, settled := range []bool{true, false} {
		inTakingWorld(t, 3, func(w *world) {
			w.level(web)
			w.change(web, "n1=10.0.0.1")
			unlock := w.hold()
			c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
			if settled {
				c.applyResult(w.t.Context(), w.whole(web)) // with its old etag
				w.expectReports("web Unchanged")
			}
			c.requeueAll(true)
			unlock()
			w.wait(time.Minute)
			if etag := w.pools[web.Key()].Etag; etag != "1" {
				t.Errorf("written for nothing: %q", w.calls)
			}
			if settled {
				w.expectCalls()
			}
		})
	}
}

// A lost write may only be known from the record, and a failed pool may be ineffective: the load
// balancer write fixes both.
func TestWhatIsNotInForceIsPutInForceByTheCarrier(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.level(web)
		w.level(api)
		w.set(func() {
			w.ledger["web"] = append(w.ledger["web"], addresses("n2=10.0.0.2")[0].IP)
			w.pools[api.Key()].Provisioning = lb.Failed
		})
		w.change(web, "n1=10.0.0.1")
		w.change(api, "n1=10.0.0.1")
		w.carry(web, api)
		w.wait(time.Minute)
		if len(w.calls) != 1 || len(w.ledger["web"]) != 1 {
			t.Errorf("calls %q, ledger %v", w.calls, w.ledger)
		}
		w.expectReports("web Unchanged", "api Unchanged")
	})
}

// What was recorded before a crash is found and removed, whether and whenever the write landed.
func TestACrashDuringTheWriteLeavesNoOrphan(t *testing.T) {
	for _, landed := range []string{"never", "before the restart"} {
		t.Run(landed, func(t *testing.T) {
			inTakingWorld(t, 3, func(w *world) {
				w.level(web)
				w.set(func() { w.pool(web, "vm=10.9.9.9 n1=10.0.0.1") })
				w.change(web, "n2=10.0.0.2")
				w.hold() // never released: the process ends here
				c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
				if landed != "never" {
					w.putWhole(c.pools)
				}
				defer w.die()()
				w.set(func() { clear(w.nodes) })
				w.change(web, "n3=10.0.0.3")
				w.wait(time.Minute)
				w.expectPool(web, "vm=10.9.9.9 n3=10.0.0.3")
				if _, ok := w.putWhole(c.pools); ok {
					t.Error("it lands after all")
				}
				if got := fmt.Sprint(w.ledger["web"]); got != "[10.0.0.3]" {
					t.Errorf("the ledger holds %s", got)
				}
			})
		})
	}
}
