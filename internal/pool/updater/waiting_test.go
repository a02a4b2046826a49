// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

func (w *world) expectWaits(want ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if fmt.Sprint(w.waits) != fmt.Sprint(want) {
		w.t.Errorf("waits:\ngot  %q\nwant %q", w.waits, want)
	}
	w.waits = nil
}

// failing makes the next n calls of a kind fail.
func (w *world) failing(call string, n int, a armerror.Failure) {
	w.set(func() {
		w.fail = func(c string, _ lb.PoolID) error {
			if c != call || n == 0 {
				return nil
			}
			n--
			return armerror.Classify(a, errors.New("as told"))
		}
	})
}

// An attempt longer than the interval is followed by the next one at once: the reported time is not
// in the past.
func TestNextAttemptIsNeverInThePast(t *testing.T) {
	for _, answer := range []armerror.Failure{{Status: 409}, {ResultUnknown: true}} {
		inWorld(t, 3, func(w *world) {
			w.pool(web, "")
			w.readTime = 2 * interval
			w.failing("PUT", 1, answer)
			w.change(web, "n1=10.0.0.1")
			w.wait(3 * interval)
			w.set(func() {
				if len(w.reports) != 1 || !w.reports[0].RetryAt.Equal(w.reports[0].At) {
					t.Errorf("%+v: told %+v", answer, w.reports)
				}
			})
			w.wait(3 * interval)
			w.expectPool(web, "n1=10.0.0.1")
		})
	}
}

func TestClosedGatePostponesWithOneReport(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.pool(api, "")
		w.set(func() { w.gates = w.start.Add(time.Minute) })
		w.change(web, "n1=10.0.0.1")
		w.change(api, "n1=10.0.0.1")
		w.wait(20 * time.Second)
		w.change(web, "n2=10.0.0.2")
		w.wait(39 * time.Second)
		w.expectCalls()
		w.expectReports()
		w.expectWaits("+250ms api Gate until +1m0s: writes closed", "+250ms web Gate until +1m0s: writes closed")
		w.wait(10 * time.Second)
		w.expectReports("api Written Updated:api", "web Written Updated:web")
		w.expectPool(web, "n2=10.0.0.2")
		w.expectWaits("+1m0s web Behind")
	})
}

// A waiting check is reported as such: the pool's status stands.
func TestWaitingResyncIsReportedSeparately(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1")
		w.set(func() { w.gates = w.start.Add(time.Minute) })
		w.look(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectWaits("+250ms web Gate until +1m0s: writes closed (to be looked at)")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(10 * time.Second)
		w.set(func() { w.gates = w.start.Add(2 * time.Minute) })
		w.wait(2 * time.Minute)
		w.expectWaits("+1m0s web Gate until +2m0s: writes closed")
	})
}

// The wait of a change at the end of an attempt is not older than the attempt.
func TestAWaitIsSeenAfterTheAttemptBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(0, interval)
		op := schedule.Operation{Ref: schedule.Ref{Name: "web"}, Pool: web, ChangedAt: time.Now()}
		q.enqueue(time.Now(), op)
		attempt := q.takeBatch(web.Key(), time.Now())
		q.enqueue(time.Now(), op)
		time.Sleep(time.Second)
		ended := time.Now()
		q.finishBatch(attempt, nil, attempt.history, nil, nil)
		if w, ok := q.behindWait(web.Key()); !ok || w.Since.Before(ended) {
			t.Errorf("told %v, seen %v before the end", ok, ended.Sub(w.Since))
		}
	})
}

func TestLongerClosedGateIsReportedAgain(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("GET", 1, armerror.Failure{Status: 429, RetryAt: w.start.Add(40 * time.Second)})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectReports("web Retriable Retrying:web") // which includes the time
		w.set(func() { w.gates = w.start.Add(50 * time.Second) })
		w.wait(35 * time.Second)
		w.expectWaits("+40s web Gate until +50s: writes closed")
		w.set(func() { w.gates = w.start.Add(5 * time.Minute) })
		w.wait(time.Minute)
		w.expectWaits("+50s web Gate until +5m0s: writes closed")
		w.wait(5 * time.Minute)
		w.expectWaits()
		w.expectReports("web Written Updated:web")
	})
}

func TestBusyPoolReportsPacing(t *testing.T) {
	inWorldOf(t, Config{MaxRetries: 3, Writes: ratelimit.New(0, interval)}, func(w *world) {
		w.pool(web, "")
		for i := range 5 {
			w.change(web, fmt.Sprintf("n%d=10.0.0.%d", i, i))
			w.wait(3 * time.Second)
		}
		w.expectWaits("+3s web Pace until +30.25s")
		w.wait(interval)
		w.expectPool(web, "n4=10.0.0.4")
		w.expectWaits()
	})
}

func TestBacklog(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.pool(api, "")
		expect := func(want Backlog) {
			t.Helper()
			if got := w.lanes.Backlog(); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		expect(Backlog{})
		w.failing("GET", 1, armerror.Failure{Status: 429, RetryAt: w.start.Add(time.Minute)})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		expect(Backlog{Operations: 1, Parked: 1, OldestQueuedAt: w.start})
		w.change(web, "n2=10.0.0.2") // kept next to the one that has consumed a retry
		w.change(web, "n3=10.0.0.3") // coalesced with the previous one
		began := time.Now()
		w.change(api, "n1=10.0.0.1")
		w.wait(time.Second) // the write of api is in progress
		expect(Backlog{Operations: 2, Parked: 1, OldestQueuedAt: w.start})
		w.lanes.RemoveService(schedule.ServiceName{Name: "web"})
		expect(Backlog{OldestQueuedAt: began})
		w.wait(10 * time.Second)
		expect(Backlog{})
		if coalesced, known := w.lanes.CountAvoided(); coalesced != 1 || known != 0 {
			t.Errorf("%d coalesced, %d known", coalesced, known)
		}
	})
}
