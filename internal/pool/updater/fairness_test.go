// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
)

// failingPool makes the next n calls of a kind for one pool fail.
func (w *world) failingPool(call string, id lb.PoolID, n int, a func() armerror.Failure) {
	w.set(func() {
		w.fail = func(c string, p lb.PoolID) error {
			if c != call || p.Key() != id.Key() || n == 0 {
				return nil
			}
			n--
			return armerror.Classify(a(), errors.New("as told"))
		}
	})
}

// Busy pools do not starve a retry.
func TestARetryDoesNotStarve(t *testing.T) {
	for _, neighbours := range []int{4, 5, 6, 20} {
		t.Run(fmt.Sprint(neighbours), func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.writeTime = 7 * time.Second
				w.pool(web, "")
				w.failingPool("PUT", web, 1, func() armerror.Failure { return armerror.Failure{Status: 409} })
				busy := make([]lb.PoolID, neighbours)
				for i := range busy {
					busy[i] = poolID("kubernetes", fmt.Sprintf("busy-%d", i))
					w.pool(busy[i], "")
				}
				w.change(web, "n1=10.0.0.1")
				w.wait(time.Second)
				limit := 2*interval + time.Duration(neighbours+1)*w.writeTime
				for i := 0; time.Since(w.start) < limit; i++ {
					for j, id := range busy {
						w.change(id, fmt.Sprintf("m=10.%d.%d.%d", j+1, i/250, i%250+1))
					}
					w.wait(time.Second)
				}
				w.expectPool(web, "n1=10.0.0.1")
			})
		})
	}
}

// Retry-After applies to the pool, even after the operation that received it.
func TestRetryAfterOutlivesTheOperation(t *testing.T) {
	tenMinutes := func() armerror.Failure {
		return armerror.Failure{Status: 429, RetryAt: time.Now().Add(10 * time.Minute)}
	}
	change := map[string]func(w *world){
		"the budget is spent":   func(*world) {},
		"the Service goes":      func(w *world) { w.lanes.RemoveService(schedule.ServiceName{Name: "web"}) },
		"the BackendPool rests": func(w *world) { w.lanes.Drop(schedule.Ref{Name: "web"}) },
	}
	for name, then := range change {
		t.Run(name, func(t *testing.T) {
			inWorld(t, len(name)%2, func(w *world) {
				w.pool(web, "")
				w.failingPool("PUT", web, 1, tenMinutes)
				w.change(web, "n1=10.0.0.1")
				w.wait(time.Second)
				then(w)
				w.set(func() { w.calls, w.waits = nil, nil })
				w.change(web, "n2=10.0.0.2")
				w.wait(9 * time.Minute)
				w.expectCalls()
				if len(w.waits) == 0 && w.lanes.Backlog().Operations == 1 {
					t.Error("nobody is told that the change waits")
				}
				w.wait(2 * time.Minute)
				w.expectPool(web, "n2=10.0.0.2")
			})
		})
	}
}

func TestPersistedRetryAfterIsHonored(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.wanted["web"] = addresses("n1=10.0.0.1")
		w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: "web"}, Pool: web, Service: schedule.ServiceName{Name: "web"}, NotBefore: w.start.Add(time.Minute)})
		w.wait(59 * time.Second)
		w.expectCalls()
		w.expectWaits("+0s web RetryAfter until +1m0s (to be looked at)")
		if b := w.lanes.Backlog(); b.Parked != 1 {
			t.Errorf("%d pools are parked", b.Parked)
		}
		w.wait(5 * time.Second)
		w.expectPool(web, "n1=10.0.0.1")
	})
}

// A change on a busy load balancer reports that at once.
func TestWaitingChangeReportsWhatIsAhead(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.writeTime = 20 * time.Second
		w.pool(web, "")
		w.pool(api, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.change(web, "n2=10.0.0.2") // its own write is in progress, as the status shows
		w.change(api, "n1=10.0.0.1")
		w.change(api, "n2=10.0.0.2")
		w.wait(time.Second)
		w.expectWaits("+1s api Behind")
		w.wait(time.Minute)
		w.expectPool(api, "n2=10.0.0.2")
	})
	inWorld(t, 3, func(w *world) { // changed together: the second one when the first begins
		w.writeTime = 20 * time.Second
		other := poolID("kubernetes", "other")
		w.pool(web, "")
		w.pool(api, "")
		w.pool(other, "")
		w.change(web, "n1=10.0.0.1")
		w.change(api, "n1=10.0.0.1")
		w.look(other, "n1=10.0.0.1") // such as after a restart: no known change
		w.wait(time.Second)
		w.expectWaits("+250ms web Behind")
		w.wait(time.Minute)
		w.expectWaits()
		w.expectReports("api Written Updated:api", "web Written Updated:web", "other Written Updated:other")
	})
	inWorld(t, 3, func(w *world) { // another writer holds the worker before and after the change
		w.pool(web, "")
		w.pool(api, "")
		w.change(api, "n1=10.0.0.1")
		unlock, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectWaits("+0s web Behind", "+250ms api Behind")
		unlock()
		w.wait(time.Minute)
		w.expectReports("api Written Updated:api", "web Written Updated:web")
	})
}

// The gate is checked when the lock is held.
func TestAGateThatClosesWhileTheLaneIsHeldCostsNothing(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		unlock, err := w.lanes.Lock(context.Background(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.set(func() { w.gates = time.Now().Add(10 * time.Minute) })
		unlock()
		w.wait(9 * time.Minute)
		w.expectCalls()
		w.expectReports()
	})
}

// A pool forgotten during an attempt leaves nothing behind, and starts over when added again.
func TestAPoolThatIsForgottenDuringAnAttempt(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for i := range 50 {
			id := poolID(fmt.Sprintf("lb%d", i), "p")
			w.pool(id, "")
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(time.Second)
		for i := range 50 {
			w.lanes.Forget(poolID(fmt.Sprintf("lb%d", i), "p"))
		}
		w.wait(time.Minute)
		if n := len(w.lanes.listWorkers()); n > 0 {
			t.Errorf("%d lanes without pools are still there", n)
		}

		w.set(func() { w.calls, w.reports = nil, nil })
		w.pool(web, "")
		w.failingPool("PUT", web, 1, func() armerror.Failure { return armerror.Failure{Status: 409} })
		w.change(web, "n1=10.0.0.1")
		w.wait(debounce - time.Millisecond)
		w.set(func() { w.readTime = time.Second })
		w.wait(500 * time.Millisecond)
		w.lanes.Forget(web)
		w.change(web, "n2=10.0.0.2")
		w.wait(10 * time.Second) // not an interval after the earlier failure
		w.expectPool(web, "n2=10.0.0.2")
	})
}

// A pause removes waiting operations. Later ones report their wait again.
func TestWaitingAfterPauseIsReportedAgain(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.set(func() { w.gates = w.start.Add(time.Minute) })
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.lanes.Drop(schedule.Ref{Name: "web"})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.expectWaits("+250ms web Gate until +1m0s: writes closed", "+1.25s web Gate until +1m0s: writes closed")
	})
}

// Resume ends the waits for Weir's own dependencies.
func TestResumeEndsTheWaitForOurOwnSide(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("RECORD", -1, armerror.Failure{})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Minute) // the pauses have grown to an interval
		w.failing("RECORD", 0, armerror.Failure{})
		w.lanes.Resume()
		w.wait(w.writeTime)
		w.expectPool(web, "n1=10.0.0.1")
	})
}

// A requested retry skips Weir's own delays with all retries left, but not Retry-After.
func TestRequestedRetry(t *testing.T) {
	for name, tt := range map[string]struct {
		met    func() armerror.Failure
		within time.Duration // until the retry
	}{
		"our own wait": {func() armerror.Failure { return armerror.Failure{Status: 409} }, 5 * time.Second},
		"a Retry-After": {func() armerror.Failure {
			return armerror.Failure{Status: 429, RetryAt: time.Now().Add(10 * time.Minute)}
		}, 11 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.pool(web, "")
				w.failingPool("PUT", web, 1, tt.met)
				w.change(web, "n1=10.0.0.1")
				w.wait(10 * time.Second)
				w.expectPool(web, "")
				w.set(func() { w.calls = nil })
				w.lanes.Retry(schedule.Ref{Name: "another"})
				w.lanes.Retry(schedule.Ref{Name: "web"})
				if tt.within > time.Minute {
					w.wait(9 * time.Minute)
					w.expectCalls()
				}
				w.wait(tt.within)
				w.expectPool(web, "n1=10.0.0.1")
			})
		})
	}
}

// Repeated requests do not bypass the backoff of admin states, which have no pace: one per interval
// takes effect.
func TestFrequentRetryRequests(t *testing.T) {
	writes := func(t *testing.T, asks bool) (n int) {
		inAdminWorld(t, func(w *world) {
			w.pool(web, "n1=10.0.0.1")
			w.failingPool("PUT", web, 10_000, func() armerror.Failure { return armerror.Failure{Status: 409} })
			w.drain(web, "n1=10.0.0.1/Down")
			for range 600 {
				w.wait(time.Second)
				if asks {
					w.lanes.Retry(schedule.Ref{Name: "web"})
				}
			}
			w.set(func() {
				for _, call := range w.calls {
					if strings.Contains(call, "PUT") {
						n++
					}
				}
			})
		})
		return n
	}
	alone, requested := writes(t, false), writes(t, true)
	t.Logf("%d writes in ten minutes, %d where somebody asks each second", alone, requested)
	if limit := alone + 2*int(10*time.Minute/interval); requested <= alone || requested > limit {
		t.Errorf("%d writes in ten minutes, want more than %d and at most %d", requested, alone, limit)
	}
}
