// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// A failed write changes nothing: retries, times, order and notifications are kept.
func TestACarrierThatFailsLeavesEverythingAsItWas(t *testing.T) {
	inTakingWorld(t, 2, func(w *world) {
		w.pool(web, "")
		w.failing("PUT", 2, fault.Failure{Status: 409})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.change(web, "n2=10.0.0.2") // kept next to the one that has failed
		w.set(func() { w.reports, w.calls = nil, nil })
		before := w.standing(web)
		for range 5 {
			unlock := w.hold()
			read := w.whole(web)
			c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, read)
			expectCarried(t, c, "web n2=10.0.0.2")
			if len(read[0].Addresses) > 0 {
				t.Error("what was read is changed")
			}
			w.wait(time.Second)
			c.requeueAll(false)
			c.applyResult(w.t.Context(), c.pools) // too late
			unlock()
		}
		if diff := cmp.Diff(before, w.standing(web), everything); diff != "" {
			t.Errorf("-before +after\n%s", diff)
		}
		w.expectReports()
		w.wait(interval)
		w.expectReports("web Retriable Retrying:web")
		w.wait(interval)
		w.expectReports("web Written Updated:web")
	})
}

// Requeued operations rank before newer ones, each with its own counter.
func TestWhatComesBackStandsWhereItStood(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("PUT", 1, fault.Failure{Status: 409})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
		w.change(web, "n2=10.0.0.2")
		c.requeueAll(false)
		unlock()
		if ops := w.standing(web).ops; len(ops) != 2 || ops[0].RetryCount != 1 || ops[1].RetryCount != 0 {
			t.Errorf("%+v", ops)
		}
		if n := w.lanes.Backlog().Operations; n != 2 {
			t.Errorf("%d operations are counted", n)
		}
	})
}

func TestWhatIsForgottenDuringTheWriteDoesNotComeBack(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.level(api)
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		unlock := w.hold()
		defer unlock()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
		w.lanes.Forget(web)
		c.requeueAll(true)
		if b := w.lanes.Backlog(); b != (Backlog{}) {
			t.Errorf("%+v waits", b)
		}
	})
}

// A load balancer write ends a postponement, also for newer operations.
func TestACarrierEndsTheWaitForTheLedger(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("READ LEDGER", 5, fault.Failure{})
		w.change(web, "n1=10.0.0.1")
		w.wait(16 * time.Second) // the next attempt is half a minute away
		w.set(func() { w.reports = nil })
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
		shown, _ := w.putWhole(c.pools)
		w.change(web, "n2=10.0.0.2")
		w.wait(time.Second)
		c.applyResult(w.t.Context(), shown)
		unlock()
		w.wait(5 * time.Second)
		w.expectReports("web Written Updated:web", "web Written Updated:web")
	})
}

// A requeued operation wakes the sleeping worker.
func TestWhatComesBackWakesTheLane(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
		w.wait(time.Minute)
		c.requeueAll(false)
		unlock()
		w.wait(5 * time.Second)
		w.expectPool(web, "n1=10.0.0.1")
		w.expectReports("web Written Updated:web")
	})
}

// Nothing unrecorded is written. The worker handles it later, without consuming a retry.
func TestWhatTheLedgerRefusesIsNotCarried(t *testing.T) {
	for _, broken := range []string{"READ LEDGER", "RECORD"} {
		t.Run(broken, func(t *testing.T) {
			inTakingWorld(t, 0, func(w *world) {
				w.pool(web, "vm=10.9.9.9")
				w.pool(api, "")
				w.change(web, "n1=10.0.0.1")
				w.change(api, "n1=10.0.0.1")
				before := w.standing(web)
				n := 1
				w.set(func() {
					w.fail = func(call string, _ lb.PoolID) error {
						if call != broken || n == 0 {
							return nil
						}
						n--
						return errors.New("the API server is away")
					}
				})
				unlock := w.hold()
				c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web, api))
				expectCarried(t, c, "web vm=10.9.9.9", "api n1=10.0.0.1")
				if diff := cmp.Diff(before, w.standing(web), everything); diff != "" {
					t.Errorf("-before +after\n%s", diff)
				}
				shown, _ := w.putWhole(c.pools)
				c.applyResult(w.t.Context(), shown)
				unlock()
				w.expectReports("api Written Updated:api")
				w.wait(interval)
				w.expectPool(web, "vm=10.9.9.9 n1=10.0.0.1")
				w.expectReports("web Written Updated:web")
			})
		})
	}
}

// Success alone proves nothing: a pool that does not show what was written is requeued.
func TestWhatIsShownOtherwiseGoesBack(t *testing.T) {
	for name, show := range map[string]func(p lb.Pool) []lb.Pool{
		"without the addresses": func(p lb.Pool) []lb.Pool { p.Addresses = nil; return []lb.Pool{p} },
		"without the pool":      func(lb.Pool) []lb.Pool { return nil },
		"still being written":   func(p lb.Pool) []lb.Pool { p.Provisioning = lb.Updating; return []lb.Pool{p} },
		"as failed":             func(p lb.Pool) []lb.Pool { p.Provisioning = lb.Failed; return []lb.Pool{p} },
		"with the old etag":     func(p lb.Pool) []lb.Pool { p.Etag = "1"; return []lb.Pool{p} },
	} {
		t.Run(name, func(t *testing.T) {
			inTakingWorld(t, 0, func(w *world) {
				w.pool(web, "vm=10.9.9.9")
				w.change(web, "n1=10.0.0.1")
				before := w.standing(web)
				unlock := w.hold()
				c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
				w.wait(w.writeTime)
				c.applyResult(w.t.Context(), show(lb.Pool{ID: web, Etag: "2", Addresses: c.pools[0].Addresses}))
				before.history.Writes.PendingEtag = "1"
				if diff := cmp.Diff(before, w.standing(web), everything); diff != "" {
					t.Errorf("-before +after\n%s", diff)
				}
				unlock()
				w.expectReports()
				w.wait(5 * time.Second)
				w.expectReports("web Written Updated:web")
				w.expectPool(web, "vm=10.9.9.9 n1=10.0.0.1")
			})
		})
	}
}

func TestWhatNobodyCaresForAnyMoreIsNotCarried(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		w.pool(api, "")
		w.change(web, "n1=10.0.0.1")
		w.change(api, "n1=10.0.0.1")
		w.set(func() { w.gone["web"] = true })
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web, api))
		expectCarried(t, c, "web vm=10.9.9.9", "api n1=10.0.0.1")
		w.set(func() { w.gone["api"] = true }) // while the write is in progress
		c.requeueAll(false)
		unlock()
		if b := w.lanes.Backlog(); b != (Backlog{}) {
			t.Errorf("%+v waits", b)
		}
		w.wait(time.Minute)
		w.expectReports()
	})
}
