// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var web, api = poolID("kubernetes", "web"), poolID("kubernetes", "api")

func TestAnIsolatedChangeGoesAtOnceAndIsRecordedBeforeItIsWritten(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(5 * time.Second)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1 10.0.0.2]", "+250ms PUT web vm=10.9.9.9 n1=10.0.0.1 n2=10.0.0.2")
		w.expectReports("web Written Updated:web")
	})
}

func TestChangesWithinTheDebounceAreOneWriteOfTheNewestMembership(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		for i := range 20 {
			w.change(web, fmt.Sprintf("n%d=10.0.0.%d", i, i))
			w.wait(10 * time.Millisecond)
		}
		if got := w.lanes.Backlog().Operations; got != 1 {
			t.Errorf("%d operations wait, want 1: equal fresh ones coalesce", got)
		}
		w.wait(5 * time.Second)
		w.expectPool(web, "n19=10.0.0.19")
		w.expectReports("web Written Updated:web")
	})
}

func TestUnchangedPoolCausesNoWriteAndNoEvent(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "n1=10.0.0.1")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.expectCalls("+250ms GET web")
		w.expectReports("web Unchanged")
		if !w.lanes.IsInSync(web, membership.Fingerprint(w.wanted["web"])) {
			t.Error("the pool is not known to be in sync")
		}
	})
}

func TestAChangeDuringAWriteIsWrittenNext(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second) // the write is in progress
		w.change(web, "n2=10.0.0.2")
		if w.lanes.IsInSync(web, membership.Fingerprint(w.wanted["web"])) {
			t.Error("a pool with a write under way passes for in sync")
		}
		w.wait(10 * time.Second)
		w.expectPool(web, "n2=10.0.0.2")
		w.expectReports("web Written Updated:web", "web Written Updated:web")
	})
}

// Without remaining quota a busy pool is written once per interval, with plenty whenever its worker
// is free.
func TestSteadyChurnCostsWhatIsLeft(t *testing.T) {
	t.Run("nothing", func(t *testing.T) { churn(t, 0, 20, 23) })
	t.Run("plenty", func(t *testing.T) { churn(t, 1, 260, 301) })
}

func churn(t *testing.T, share float64, least, maximum int) {
	inWorldOf(t, Config{MaxRetries: 3, Writes: ratelimit.New(share, interval)}, func(w *world) {
		w.pool(web, "")
		for i := range 600 { // ten minutes, one change per second
			w.change(web, fmt.Sprintf("n%d=10.0.%d.%d", i, i/256, i%256))
			w.wait(time.Second)
		}
		w.wait(2 * interval)
		w.expectPool(web, "n599=10.0.2.87")
		if n := len(w.reports); n < least || n > maximum {
			t.Errorf("%d writes in ten minutes of churn, want %d to %d", n, least, maximum)
		}
		w.reports = nil
	})
}

func TestABusyPoolCostsItsNeighbourNothingButTheLanesTime(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.pool(api, "")
		for i := range 8 { // web uses up its passes
			w.change(web, fmt.Sprintf("n%d=10.0.0.%d", i, i))
			w.wait(3 * time.Second)
		}
		began := time.Now()
		w.change(api, "n1=10.0.0.1")
		w.wait(w.writeTime + debounce)
		w.expectPool(api, "n1=10.0.0.1")
		if lag := time.Since(began); lag > 3*time.Second {
			t.Errorf("api waited %s", lag)
		}
	})
}

func TestLanesOfTwoLoadBalancersRunSideBySide(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		single, two := poolID("one", "first"), poolID("two", "second")
		w.pool(single, "")
		w.pool(two, "")
		w.change(single, "n1=10.0.0.1")
		w.change(two, "n1=10.0.0.1")
		w.wait(debounce + w.writeTime)
		w.expectPool(single, "n1=10.0.0.1")
		w.expectPool(two, "n1=10.0.0.1")
	})
}

func TestPoolsOfOneLoadBalancerAreNeverWrittenAtOnce(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.pool(api, "")
		w.change(web, "n1=10.0.0.1")
		w.change(api, "n1=10.0.0.1")
		w.wait(10 * time.Second)
		w.expectCalls("+250ms GET api", "+250ms RECORD api [10.0.0.1]", "+250ms PUT api n1=10.0.0.1",
			"+2.25s GET web", "+2.25s RECORD web [10.0.0.1]", "+2.25s PUT web n1=10.0.0.1")
	})
}

func TestAWriteUnderWayKeepsTheLane(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second) // the write ends at 2.25 s
		unlock, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		defer unlock()
		if got := time.Since(w.start); got != debounce+w.writeTime {
			t.Errorf("got the lane after %s, want it when the write has ended", got)
		}
	})
}

func TestAChangeThatIsTakenBackDuringAWriteIsNotLost(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		before := membership.Fingerprint(w.wanted["web"])
		w.change(web, "n2=10.0.0.2")
		w.wait(time.Second) // the write is in progress, and the endpoints are restored
		if w.lanes.IsInSync(web, before) {
			t.Error("a pool passes for in sync as it was before the write under way")
		}
	})
}

func TestHolderOfWorkerBlocksPoolWrites(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		unlock, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectCalls()
		unlock()
		w.wait(3 * time.Second)
		w.expectPool(web, "n1=10.0.0.1")
	})
}

func TestFirstTakingABoundPoolRemovesThisClustersNodesAlone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.change(web, "old=10.0.0.7") // makes 10.0.0.7 a node of this cluster
		w.wait(time.Second)
		w.set(func() { w.pool(web, "old=10.0.0.7 vm=10.9.9.9") })
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.expectPool(web, "vm=10.9.9.9 n1=10.0.0.1")
	})
}

func TestALedgerThatCannotBeWrittenKeepsThePoolUnwrittenAndCostsNoRetry(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.pool(web, "")
		broken := true
		w.fail = func(call string, _ lb.PoolID) error {
			if broken && call == "RECORD" {
				return errors.New("the API server is away")
			}
			return nil
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(20 * time.Second)
		w.expectPool(web, "")
		w.set(func() { broken = false })
		w.wait(interval)
		w.expectPool(web, "n1=10.0.0.1")
		for _, r := range w.reports[:len(w.reports)-1] {
			if r.Outcome != diff.Postponed {
				t.Errorf("outcome %s, want Postponed", r.Outcome)
			}
		}
		if tries := len(w.reports); tries > 7 {
			t.Errorf("%d tries: they have to back off", tries)
		}
	})
}

func TestAConflictIsRetriedOneIntervalLaterAfterAFreshRead(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		writes := 0
		w.fail = func(call string, _ lb.PoolID) (err error) {
			if call == "PUT" && writes < 2 { // the second write of the attempt fails, too
				writes++
				w.pool(web, "vm=10.9.9.9")
				w.pools[web.Key()].Etag = fmt.Sprint(6 + writes)
			}
			return nil
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(interval)
		w.expectReports("web Retriable Retrying:web")
		w.wait(5 * time.Second)
		w.expectPool(web, "vm=10.9.9.9 n1=10.0.0.1")
		w.expectReports("web Written Updated:web")
	})
}

func TestABudgetIsSpentAndThenThePoolIsLeft(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.pool(web, "")
		w.fail = func(string, lb.PoolID) error {
			return armerror.Classify(armerror.Failure{Status: 409}, errors.New("busy"))
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(10 * interval)
		w.expectReports("web Retriable Retrying:web", "web Retriable Retrying:web", "web Retriable Failed:web")
		if w.lanes.Backlog().Operations != 0 {
			t.Error("the queue is not empty")
		}
	})
}

func TestASuccessThatShowsSomethingElseIsNotDone(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		emptied := false
		w.lanes.cfg.Azure = emptying{w, &emptied}
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Second)
		w.expectReports("web Retriable Retrying:web")
		w.wait(interval)
		w.expectPool(web, "n1=10.0.0.1")
	})
}

// emptying reports success for the first write but leaves the pool empty.
type emptying struct {
	*world
	done *bool
}

func (e emptying) PutPool(ctx context.Context, p lb.Pool) (lb.Pool, error) {
	if !*e.done {
		*e.done = true
		p.Addresses = nil
	}
	return e.world.PutPool(ctx, p)
}

func TestAnAttemptWithoutEndIsLeftAfterTenMinutes(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		w.pool(web, "")
		w.writeTime = time.Hour
		w.change(web, "n1=10.0.0.1")
		w.wait(11 * time.Minute)
		w.expectReports("web Retriable Failed:web")
	})
}

func TestIrrelevantOperationsAreDroppedSilently(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.set(func() { w.gone["web"] = true })
		w.wait(interval)
		w.expectCalls()
		w.expectReports()
	})
}

func TestRemoveServiceTakesParkedOperationsToo(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		until := time.Now().Add(time.Hour)
		w.fail = func(string, lb.PoolID) error {
			return armerror.Classify(armerror.Failure{Status: 429, RetryAt: until}, errors.New("slow down"))
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		if n := w.lanes.RemoveService(schedule.ServiceName{Name: "web"}); n != 1 {
			t.Errorf("%d operations removed, want 1", n)
		}
		w.wait(2 * time.Hour)
		w.expectReports("web Retriable Retrying:web")
	})
}

func TestMissingPoolCausesNoServiceEvent(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.change(web, "n1=10.0.0.1")
		w.wait(interval)
		w.expectReports("web Stale")
	})
}

func TestStoppingInTheMiddleOfAWriteReportsNothing(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.writeTime = time.Hour
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		t.Cleanup(func() {
			if len(w.reports) != 0 {
				t.Errorf("reports after stop: %v", w.reports)
			}
		})
	})
}

// A postponed pool that keeps changing has a bounded queue: one new operation, and one per retry
// count.
func TestTheQueueIsBounded(t *testing.T) {
	for _, broken := range []string{"READ LEDGER", "RECORD", "GET", "PUT"} {
		t.Run(broken, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.pool(web, "")
				w.readTime = 2500 * time.Millisecond // changes come during an attempt
				w.fail = func(call string, _ lb.PoolID) error {
					if call == broken {
						return armerror.Classify(armerror.Failure{Status: 409}, errors.New("busy"))
					}
					return nil
				}
				for i := range 500 {
					w.change(web, fmt.Sprintf("n%d=10.0.0.%d", i%9, i%9+1))
					w.wait(time.Second)
					if got := w.lanes.Backlog().Operations; got > 1+3 {
						t.Fatalf("%d operations for one pool after %d changes, want at most 1 + maxRetries", got, i+1)
					}
				}
			})
		})
	}
}

// BenchmarkAdd measures sixteen goroutines that add changes of a hundred pools while the load
// balancer's worker takes them.
func BenchmarkAdd(b *testing.B) {
	w := &world{}
	lanes := New(Config{Interval: interval, Azure: w})
	var ops []schedule.Operation
	for i := range 100 {
		id := poolID("kubernetes", fmt.Sprintf("pool-%d", i))
		ops = append(ops, schedule.Operation{Ref: schedule.Ref{Name: id.Name}, Pool: id, Service: schedule.ServiceName{Name: id.Name}})
	}
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			lanes.Add(ops[i%len(ops)])
			if i%100 == 0 {
				lanes.listWorkers()[0].queue.takeBatch(ops[i%len(ops)].Pool.Key(), time.Now())
			}
		}
	})
}
