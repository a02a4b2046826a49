// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// A requeued operation ranks before newer ones and absorbs them; its age is that of the first
// change.
func TestRequeuedOperationKeepsItsAge(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.readTime = 2 * time.Second
		w.failing("READ LEDGER", 1, armerror.Failure{})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second) // the pool is being read
		w.change(web, "n2=10.0.0.2")
		if b := w.lanes.Backlog(); b != (Backlog{Operations: 1, OldestQueuedAt: w.start}) {
			t.Errorf("during the attempt: %+v, want the age of what is under way", b)
		}
		w.wait(1500 * time.Millisecond)
		w.expectReports("web Postponed")
		if b := w.lanes.Backlog(); b != (Backlog{Operations: 1, OldestQueuedAt: w.start}) {
			t.Errorf("after it: %+v, want one operation as old as the first", b)
		}
		w.wait(10 * time.Second)
		if got := w.reports[0].ChangedAt; !got.Equal(w.start) {
			t.Errorf("the change is %s younger than the first that it stands for", got.Sub(w.start))
		}
		w.expectReports("web Written Updated:web")
		w.expectPool(web, "n2=10.0.0.2")
	})
}

func TestTheOldestOfSeveralChangesCounts(t *testing.T) {
	ops := []schedule.Operation{{ChangedAt: seconds(5)}, {}, {ChangedAt: seconds(1)}, {ChangedAt: seconds(3)}}
	if got := schedule.OldestChange(ops); !got.Equal(seconds(1)) {
		t.Errorf("got +%s", got.Sub(start))
	}
	if got := schedule.OldestChange([]schedule.Operation{{}, {Resync: true}}); !got.IsZero() {
		t.Errorf("no change is as old as %s", got)
	}
}

// A forgotten pool leaves nothing to pick, not even a drift check.
func TestForgettingLeavesNothingToPick(t *testing.T) {
	q := newQueue(period, interval)
	q.enqueue(start, schedule.Operation{Ref: schedule.Ref{Name: "web"}, Pool: web})
	q.enqueue(start, schedule.Operation{Ref: schedule.Ref{Name: "api"}, Pool: api})
	q.markDueChecks(start.Add(period))
	if len(q.withOps) != 2 || q.depth != 2 {
		t.Fatalf("%d pools with %d operations", len(q.withOps), q.depth)
	}
	q.removePool(web.Key())
	q.takeBatch(api.Key(), start)
	if pick, ok, _ := q.nextPool(start.Add(period)); ok || q.depth != 0 || len(q.withOps) != 0 {
		t.Errorf("%q is picked; %d pools with %d operations are left", pick, len(q.withOps), q.depth)
	}
	if b := q.addBacklog(Backlog{}, start); b.Operations != 0 {
		t.Errorf("%+v", b)
	}
}

// A check that was due when its pool was taken is due again when the pool is put back.
func TestACheckThatIsPutBackIsDue(t *testing.T) {
	q := newQueue(period, interval)
	q.enqueue(start, schedule.Operation{Ref: schedule.Ref{Name: "web"}, Pool: web, ChangedAt: start})
	q.markDueChecks(start.Add(period))
	q.requeueBatch(q.takeBatch(web.Key(), start.Add(period)))
	if w := q.pools[web.Key()]; !w.resyncDue || w.inFlight || len(w.ops) != 1 || w.ops[0].Resync {
		t.Errorf("%+v", w)
	}
}

// membersOnly needs no admin states.
type membersOnly struct{ Cluster }

func (membersOnly) IsNeeded(op schedule.Operation) bool { return !op.Admin }

// An operation that is taken before it is due waits on if the one that was due is no longer needed.
func TestOperationWaitsUntilDue(t *testing.T) {
	lanes, ref := New(Config{Interval: interval, Cluster: membersOnly{}}), schedule.Ref{Name: "web"}
	lanes.Add(schedule.Operation{Ref: ref, Pool: web, Admin: true, ChangedAt: start}, schedule.Operation{Ref: ref, Pool: web, ChangedAt: start, NotBefore: time.Now().Add(-time.Second)})
	l := lanes.listWorkers()[0]
	if p, ok := l.takeUpdate(web.Key()); ok {
		t.Fatalf("attempted: %+v", p.ops)
	}
	if w := l.queue.pools[web.Key()]; w.inFlight || len(w.ops) != 1 || w.ops[0].Admin || w.ops[0].Extra {
		t.Errorf("%+v", w)
	}
}

// Removing an operation may end the wait of the others.
func TestTakingOneOutLetsTheOthersGo(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("PUT", 1, armerror.Failure{Status: 409})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.expectReports("web Retriable Retrying:web")
		w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: "web"}, Pool: web, Service: schedule.ServiceName{Name: "heir"}})
		w.wait(time.Second)
		w.expectReports() // both wait for the retry
		if n := w.lanes.RemoveService(schedule.ServiceName{Name: "web"}); n != 1 {
			t.Errorf("%d operations were taken out", n)
		}
		w.wait(5 * time.Second)
		w.expectReports("web Written Updated:heir")
	})
}

func TestMergedOperationWakesNoWorker(t *testing.T) {
	lanes := New(Config{})
	for i, want := range []int{1, 0, 0} {
		lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: "web"}, Pool: web})
		q := lanes.listWorkers()[0].queue
		if got := len(q.wakeup); got != want {
			t.Errorf("number %d: %d wake-ups, want %d", i, got, want)
		}
		for range len(q.wakeup) {
			<-q.wakeup
		}
	}
}

// A pool is not reported in sync while something may change it.
func TestPoolWithAQueuedOperationIsOutOfSync(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.inSync(web)
		inSync := membership.Fingerprint(w.wanted["web"])
		if !w.lanes.IsInSync(web, inSync) {
			t.Fatal("a pool that was read is not known to be in sync")
		}
		w.set(func() { w.gates = time.Now().Add(time.Hour) })
		w.change(web, "n2=10.0.0.2")
		w.wait(time.Minute)
		if w.lanes.IsInSync(web, inSync) {
			t.Error("a change waits, and the pool passes for in sync as it was before it")
		}
	})
}

// If the Service is deleted during the write, nothing is notified, but the record is trimmed to
// what the pool holds.
func TestAWriteWhoseServiceIsGoneIsReported(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.inSync(web)
		w.change(web, "n2=10.0.0.2")
		w.wait(time.Second)
		if got := len(w.ledger["web"]); got != 2 {
			t.Fatalf("%d addresses are recorded during the write, want the old one and the new", got)
		}
		w.set(func() { w.gone["web"] = true })
		w.wait(5 * time.Second)
		w.expectReports("web Written")
		if got := w.ledger["web"]; len(got) != 1 || got[0] != netip.MustParseAddr("10.0.0.2") {
			t.Errorf("the ledger holds %v", got)
		}
	})
}

// deaf completes a write although its caller has given up.
type deaf struct{ *world }

func (d deaf) PutPool(ctx context.Context, p lb.Pool) (lb.Pool, error) {
	return d.world.PutPool(context.WithoutCancel(ctx), p)
}

func TestAWriteThatEndsWellWhileStoppingIsReported(t *testing.T) {
	var stopped *world
	inWorld(t, 3, func(w *world) {
		stopped = w
		w.lanes.cfg.Azure = deaf{w}
		w.inSync(web)
		w.change(web, "n2=10.0.0.2")
		w.wait(time.Second)
	})
	stopped.t = t
	stopped.expectReports("web Written Updated:web")
	if got := stopped.ledger["web"]; len(got) != 1 {
		t.Errorf("the ledger holds %v", got)
	}
}

func TestNothingIsPutBackWhileStopping(t *testing.T) {
	var stopped *world
	inWorld(t, 3, func(w *world) {
		stopped = w
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second) // the write is in progress
	})
	if got := stopped.lanes.Backlog().Operations; got != 0 {
		t.Errorf("%d operations are queued again", got)
	}
	if len(stopped.reports) != 0 {
		t.Errorf("somebody was told: %+v", stopped.reports)
	}
}

// The pause of postponements restarts after a success.
func TestPausesStartAnewAfterASuccess(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1")
		w.failing("READ LEDGER", 2, armerror.Failure{})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectCalls("+250ms GET web", "+1.25s GET web", "+3.25s GET web")
		w.failing("READ LEDGER", 1, armerror.Failure{})
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectCalls("+10.25s GET web", "+11.25s GET web")
	})
}

// Without a next attempt the report names no time; Retry-After is kept.
func TestAReportWithoutAnotherAttemptNamesNoTime(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.pool(web, "")
		w.failingPool("PUT", web, 2, func() armerror.Failure {
			return armerror.Failure{Status: 429, RetryAt: time.Now().Add(time.Minute)}
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(90 * time.Second)
		w.change(web, "n2=10.0.0.2")
		w.wait(2 * time.Minute)
		for i, want := range []struct{ requeued, parked bool }{{true, true}, {false, true}, {false, false}} {
			if r := w.reports[i]; r.RetryAt.IsZero() == want.requeued || r.NextEligibleAt.IsZero() == want.parked || r.WillRetry != want.requeued {
				t.Errorf("%s, requeued %v: the next attempt is at %s, not before %s", r.Outcome, r.WillRetry, r.RetryAt, r.NextEligibleAt)
			}
		}
		w.expectReports("web Retriable Retrying:web", "web Retriable Failed:web", "web Written Updated:web")
	})
}

// A coalesced operation that makes a pool due earlier wakes the worker: a recreated pool ignores
// its pace.
func TestAnOperationThatIsDueEarlierWakesItsLane(t *testing.T) {
	inWorldOf(t, Config{MaxRetries: 3, Writes: ratelimit.New(0, interval)}, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.change(web, "n2=10.0.0.2") // waits for its pace
		w.wait(2 * time.Second)
		w.lanes.Add(schedule.Operation{
			Ref: schedule.Ref{Name: "web"}, Pool: web, Service: schedule.ServiceName{Name: "web"}, ChangedAt: time.Now(), FillsPool: true,
		})
		w.wait(3 * time.Second)
		w.expectPool(web, "n2=10.0.0.2")
		w.reports, w.waits = nil, nil
	})
}

// The pace is polled, because a quota recovers without a signal.
func TestAPoolWaitsNoLongerThanItsPaceIsShort(t *testing.T) {
	writes := ratelimit.New(1, interval)
	inWorldOf(t, Config{MaxRetries: 3, Writes: writes}, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(3 * time.Second)
		for range 300 { // others of this process empty the bucket, which refills in seconds
			writes.CountWrite(web.LoadBalancer.SubscriptionID, time.Now())
		}
		w.change(web, "n2=10.0.0.2")
		w.wait(interval / 2)
		w.expectPool(web, "n2=10.0.0.2")
		w.reports, w.waits = nil, nil
	})
}
