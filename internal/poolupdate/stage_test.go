// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
)

func TestAChangeThatIsCarriedNeedsNoWriteOfThePool(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.level(api) // nothing is pending
		w.pool(web, "vm=10.9.9.9")
		w.change(web, "n1=10.0.0.1")
		w.carry(web, api)
		w.wait(time.Minute)
		w.expectCalls("+10s RECORD web [10.0.0.1]", "+12s PUT balancer web:vm=10.9.9.9 n1=10.0.0.1 api:n1=10.0.0.1")
		w.expectReports("web Written Updated:web")
		for _, id := range []lb.PoolID{web, api} {
			if !w.lanes.IsInSync(id, membership.Fingerprint(w.wanted[id.Name])) {
				t.Errorf("%s is not known to be level", id.Name)
			}
		}
		if h := w.standing(web).history; !h.LastChange.Equal(w.start.Add(10*time.Second)) || !h.LastAttempt.Equal(w.start.Add(10*time.Second)) {
			t.Errorf("%+v: one pass is spent, by an attempt that began when it was carried", h)
		}
	})
}

// The report does not depend on the writer.
func TestWhatIsCarriedIsReportedLikeAnAttempt(t *testing.T) {
	stories := map[string]func(w *world){
		"written": func(w *world) { w.change(web, "n1=10.0.0.1 n2=10.0.0.2") },
		"removed": func(w *world) { w.level(web); w.change(web, "") },
		"level already, for a Service that was told of a failure": func(w *world) {
			w.failing("PUT", 1, fault.Failure{Status: 409})
			w.change(web, "n1=10.0.0.1")
			w.wait(interval - time.Second)
			w.set(func() { w.pool(web, "n1=10.0.0.1") })
		},
		"after two failures, with a fresh change beside": func(w *world) {
			w.failing("PUT", 2, fault.Failure{Status: 409})
			w.change(web, "n1=10.0.0.1")
			w.wait(interval + 10*time.Second)
			w.change(web, "n2=10.0.0.2")
		},
		"given up": func(w *world) {
			w.failing("PUT", 1, fault.Failure{Status: 403})
			w.change(web, "n1=10.0.0.1")
			w.wait(time.Second)
			w.look(web, "n1=10.0.0.1")
		},
		"for two Services": func(w *world) {
			w.change(web, "n1=10.0.0.1")
			w.lanes.Add(poolschedule.Operation{Ref: poolschedule.Ref{Name: "web"}, Pool: web, Service: poolschedule.ServiceName{Name: "other"}, ChangedAt: time.Now()})
		},
	}
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			var reports [2][]Report
			var ledger [2]string
			for i := range reports {
				inDriftingTakingWorld(t, 3, 100*period, func(w *world) {
					w.pool(web, "vm=10.9.9.9")
					story(w)
					if i == 1 {
						w.carry(web)
					}
					w.wait(time.Minute)
					reports[i], ledger[i] = w.reports, fmt.Sprint(w.ledger)
				})
			}
			if diff := cmp.Diff(reports[0], reports[1], cmpopts.IgnoreFields(Report{}, "At", "Duration"),
				cmpopts.IgnoreTypes(&fault.Fault{}), cmpopts.EquateComparable(netip.Addr{})); diff != "" || ledger[0] != ledger[1] {
				t.Errorf("-attempted +carried\n%s\nledgers %v", diff, ledger)
			}
		})
	}
}

func TestAParkedPoolIsCarriedUnchanged(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		w.pool(api, "")
		w.failingPool("PUT", web, 1, func() fault.Failure {
			return fault.Failure{Status: 429, RetryAt: w.start.Add(10 * time.Minute)}
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.change(web, "n2=10.0.0.2")
		w.change(api, "n1=10.0.0.1")
		w.set(func() { w.calls, w.reports = nil, nil })
		before := w.standing(web)
		w.carry(web, api)
		w.expectCalls("+10s RECORD api [10.0.0.1]", "+12s PUT balancer web:vm=10.9.9.9 api:n1=10.0.0.1")
		if diff := cmp.Diff(before, w.standing(web), everything); diff != "" {
			t.Errorf("-before +after\n%s", diff)
		}
		w.wait(9 * time.Minute)
		w.expectReports("api Written Updated:api")
		w.wait(time.Minute)
		w.expectPool(web, "vm=10.9.9.9 n2=10.0.0.2")
	})
}

func TestWhatIsAddedDuringTheWriteComesNext(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
		w.wait(time.Second)
		shown, _ := w.putWhole(c.pools)
		w.change(web, "n2=10.0.0.2")
		if got := w.lanes.Backlog(); got.Operations != 1 || !got.OldestQueuedAt.Equal(w.start) {
			t.Errorf("%+v: one waits, and an older one is under way", got)
		}
		c.applyResult(w.t.Context(), shown)
		unlock()
		w.expectReports("web Written Updated:web")
		w.wait(5 * time.Second)
		// After its debounce, not because the worker waited for its turn.
		w.expectCalls("+0s RECORD web [10.0.0.1]", "+3s PUT balancer web:n1=10.0.0.1",
			"+3.25s GET web", "+3.25s RECORD web [10.0.0.1 10.0.0.2]", "+3.25s PUT web n2=10.0.0.2")
		w.expectReports("web Written Updated:web")
	})
}

// A change was written for a worker that was waiting for its turn with it: no attempt. Newer
// operations wait for their own time.
func TestTheLaneAttemptsNothingThatWasCarriedWhileItWaited(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.pool(web, "")
		unlock := w.hold()
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
		shown, _ := w.putWhole(c.pools)
		c.applyResult(w.t.Context(), shown)
		w.change(web, "n2=10.0.0.2")
		unlock()
		w.wait(5 * time.Second)
		w.expectCalls("+1s RECORD web [10.0.0.1]", "+3s PUT balancer web:n1=10.0.0.1",
			"+3.25s GET web", "+3.25s RECORD web [10.0.0.1 10.0.0.2]", "+3.25s PUT web n2=10.0.0.2")
	})
}

// A check is included, and requeued if the write fails.
func TestALookForDriftIsCarried(t *testing.T) {
	inDriftingTakingWorld(t, 3, period, func(w *world) {
		w.level(web)
		w.set(func() {
			w.pool(web, "vm=10.9.9.9") // another client removed n1
			w.gates = w.start.Add(period + time.Minute)
		})
		w.wait(period)
		w.expectCalls()
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
		expectCarried(t, c, "web vm=10.9.9.9 n1=10.0.0.1")
		c.requeueAll(false)
		unlock()
		if b := w.lanes.Backlog(); b != (Backlog{}) {
			t.Errorf("a look that comes back counts as %+v", b)
		}
		w.expectReports()
		w.carry(web)
		if r := w.reports[0]; !r.Resync || r.NextCheckAt.IsZero() {
			t.Errorf("%+v", r)
		}
		w.expectReports("web Written Updated:web")
		w.set(func() { w.calls = nil })
		w.wait(2 * time.Minute)
		w.expectCalls()
	})
}

// Weir writes no network interfaces, and a write in progress may be rolled back.
func TestWhichPoolsAreLeftAsTheyAre(t *testing.T) {
	for name, spoil := range map[string]func(p *lb.Pool){
		"network interfaces": func(p *lb.Pool) { p.NIC = true },
		"a write under way":  func(p *lb.Pool) { p.Provisioning = lb.Updating },
	} {
		inTakingWorld(t, 3, func(w *world) {
			w.pool(web, "vm=10.9.9.9")
			w.set(func() { spoil(w.pools[web.Key()]) })
			w.change(web, "n1=10.0.0.1")
			unlock := w.hold()
			c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
			expectCarried(t, c, "web vm=10.9.9.9")
			if n := len(w.standing(web).ops); n != 1 {
				t.Errorf("%s: %d operations wait, want the one", name, n)
			}
			unlock()
		})
	}
}

// The write that creates a pool also fills it. Names are compared ignoring case, as in Azure.
func TestAPoolIsFilledByTheWriteThatMakesIt(t *testing.T) {
	inTakingWorld(t, 3, func(w *world) {
		w.change(web, "n1=10.0.0.1")
		unlock := w.hold()
		planned := w.whole(web)
		planned[0].ID.Name = strings.ToUpper(web.Name)
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, planned)
		expectCarried(t, c, "WEB n1=10.0.0.1")
		shown, _ := w.putWhole(c.pools)
		shown[0].ID.Name = web.Name
		c.applyResult(w.t.Context(), shown)
		unlock()
		w.wait(time.Minute)
		w.expectPool(web, "n1=10.0.0.1")
		w.expectReports("web Written Updated:web")
		if fmt.Sprint(w.ledger) != "map[web:[10.0.0.1]]" {
			t.Errorf("the ledger holds %v", w.ledger)
		}
	})
}
