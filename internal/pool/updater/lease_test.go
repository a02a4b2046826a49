// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// oneLease is a lease that another holder may have.
type oneLease struct {
	mu     sync.Mutex // held briefly
	holder string     // another holder; empty if free
	lost   bool       // no write may start
	slow   time.Duration
	asked  int
	trace  []string // "enter", "leave"
}

// Enter implements Lease.
func (l *oneLease) Enter(ctx context.Context) (func() bool, func(), error) {
	l.set(func() { l.asked++ })
	l.mu.Lock()
	slow := l.slow
	l.mu.Unlock()
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != "" {
		return nil, nil, fmt.Errorf("the lease is held by %q", l.holder)
	}
	l.trace = append(l.trace, "enter")
	return l.valid, func() { l.set(func() { l.trace = append(l.trace, "leave") }) }, nil
}

func (l *oneLease) valid() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.lost
}

// times returns the number of Enter calls.
func (l *oneLease) times() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

func (l *oneLease) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func inLeasedWorld(t *testing.T, explanation func(w *world, l *oneLease)) {
	l := &oneLease{}
	inWorldOf(t, Config{MaxRetries: 1, Lease: l}, func(w *world) { explanation(w, l) })
}

func TestARefusedLeaseLeavesEverythingQueued(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		w.pool(web, "")
		l.set(func() { l.holder = "other" })
		w.change(web, "n1=10.0.0.1")
		w.wait(5 * time.Minute)
		w.change(web, "n2=10.0.0.2") // coalesced; the worker is not woken
		w.wait(5 * time.Minute)
		w.expectCalls()
		w.expectReports()
		w.expectWaits(`+250ms web Lease: the lease is held by "other"`)
		if got := w.lanes.Backlog(); got.Operations != 1 || got.Parked != 0 || !got.OldestQueuedAt.Equal(w.start) {
			t.Errorf("while it waits: %+v", got)
		}
		if n := l.times(); n < 20 || n > 22 {
			t.Errorf("asked %d times in ten minutes, want once an interval", n)
		}
		l.set(func() { l.holder = "a third" })
		w.wait(interval + time.Second)
		w.expectWaits(`+10m0.25s web Lease: the lease is held by "a third"`)

		// All retries are left: two attempts.
		l.set(func() { l.holder = "" })
		w.failing("PUT", 2, armerror.Failure{Status: 409})
		w.wait(2*interval + time.Minute)
		w.expectReports("web Retriable Retrying:web", "web Retriable Failed:web")
		w.expectWaits()
		w.change(web, "n3=10.0.0.3")
		w.wait(time.Minute)
		w.expectReports("web Written Updated:web")
		w.expectPool(web, "n3=10.0.0.3")
	})
}

// All pools of the worker report the wait, once per wait.
func TestEveryPoolReportsWaitingForLease(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		w.pool(web, "")
		w.pool(api, "")
		l.set(func() { l.holder = "other" })
		w.change(web, "n1=10.0.0.1")
		w.change(api, "n1=10.0.0.1")
		w.wait(2 * interval)
		w.expectWaits(`+250ms api Lease: the lease is held by "other"`, `+250ms web Lease: the lease is held by "other"`)
		l.set(func() { l.holder = "" })
		w.wait(interval + 5*time.Second)
		w.expectReports("api Written Updated:api", "web Written Updated:web")
		w.expectWaits("+1m0.25s web Behind")
		l.set(func() { l.holder = "other" })
		began := time.Since(w.start) + debounce
		w.change(web, "n2=10.0.0.2")
		w.wait(2 * interval)
		w.expectWaits(fmt.Sprintf(`+%s web Lease: the lease is held by "other"`, began))
	})
}

func TestAPassIsUnderTheLease(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		w.pool(web, "")
		w.set(func() {
			w.fail = func(call string, _ lb.PoolID) error { l.set(func() { l.trace = append(l.trace, call) }); return nil }
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second) // the write is in progress
		l.set(func() { l.trace = append(l.trace, "…") })
		w.wait(5 * time.Second)
		var got string
		if l.set(func() { got = strings.Join(l.trace, " ") }); got != "enter GET READ LEDGER RECORD PUT … leave" {
			t.Errorf("%s", got)
		}
	})
}

// The worker's lock is taken before the lease, and the queue's lock last.
func TestTheLaneComesBeforeTheLeaseAndTheLeaseBeforeTheQueue(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		w.pool(web, "")
		unlock, err := w.lanes.Lock(w.t.Context(), web.LoadBalancer)
		if err != nil {
			t.Fatal(err)
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		if l.times() != 0 {
			t.Error("asked for the lease without the lane")
		}
		l.set(func() { l.slow = time.Minute })
		unlock()
		w.wait(10 * time.Second) // waiting for the lease
		if n := l.times(); n != 1 {
			t.Fatalf("the lease was asked for %d times", n)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		if _, err := w.lanes.Lock(ctx, web.LoadBalancer); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another client got the lane meanwhile: %v", err)
		}
		if got := w.lanes.Backlog().Operations; got != 1 {
			t.Errorf("%d operations wait, want the one: nothing is drained before the lease is there", got)
		}
		before := time.Now()
		w.change(api, "n1=10.0.0.1") // takes the queue's lock without blocking
		w.lanes.RemoveService(schedule.ServiceName{Name: "api"})
		if time.Since(before) != 0 {
			t.Error("an event waited for the lease")
		}
		w.wait(2 * time.Minute)
		w.expectPool(web, "n1=10.0.0.1")
	})
}

func TestAClosedGateDoesNotAskForTheLease(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		w.pool(web, "")
		w.set(func() { w.gates = w.start.Add(time.Minute) })
		w.change(web, "n1=10.0.0.1")
		w.wait(59 * time.Second)
		if n := l.times(); n != 0 {
			t.Errorf("asked %d times while nothing could be done with it", n)
		}
		w.wait(10 * time.Second)
		w.expectReports("web Written Updated:web")
	})
}

// What was read under a lease lost since is not written.
func TestALeaseThatIsLostBeforeTheWriteMeansNoWrite(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		w.pool(web, "")
		w.set(func() {
			w.fail = func(call string, _ lb.PoolID) error {
				if call == "RECORD" {
					l.set(func() { l.lost, l.holder = true, "other" })
				}
				return nil
			}
		})
		w.change(web, "n1=10.0.0.1")
		w.wait(2 * time.Minute)
		w.expectCalls("+250ms GET web", "+250ms RECORD web [10.0.0.1]")
		w.expectReports("web Postponed") // without a notification
		w.expectWaits(`+1.25s web Lease: the lease is held by "other"`)
		l.set(func() { l.lost, l.holder = false, "" })
		w.wait(interval + 5*time.Second)
		w.expectReports("web Written Updated:web")
		w.expectPool(web, "n1=10.0.0.1")
		if r := w.lanes.Backlog(); r.Operations != 0 {
			t.Errorf("%+v", r)
		}
	})
}

// Whenever the lease is lost and regained: no write starts without it, and finally everything is in
// sync.
func TestNoWriteWithoutTheLease(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		single, two := poolID("one", "first"), poolID("two", "second")
		w.pool(single, "")
		w.pool(two, "")
		writes := 0
		w.set(func() {
			w.readTime = 900 * time.Millisecond
			w.fail = func(call string, _ lb.PoolID) error {
				if call == "PUT" {
					writes++
					if !l.valid() {
						t.Errorf("+%s: written without the lease", time.Since(w.start))
					}
				}
				return nil
			}
		})
		for i := range 300 {
			w.change(single, fmt.Sprintf("n%d=10.0.%d.%d", i, i/256, i%256))
			w.change(two, fmt.Sprintf("n%d=10.1.%d.%d", i, i/256, i%256))
			w.wait(1100 * time.Millisecond)
			l.set(func() { l.lost = i%3 != 0 })
		}
		l.set(func() { l.lost = false })
		w.wait(3 * interval)
		w.expectPool(single, "n299=10.0.1.43")
		w.expectPool(two, "n299=10.1.1.43")
		postponed := slices.ContainsFunc(w.reports, func(r Report) bool { return r.Outcome == diff.Postponed })
		if !postponed || writes < 4 {
			t.Errorf("%d writes, postponed %v: the story tells nothing", writes, postponed)
		}
		for _, r := range w.reports {
			if len(r.Failed)+len(r.Retrying) > 0 || r.RetriesUsed > 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}

func TestStoppingWhileTheLeaseIsWaitedForReportsNothing(t *testing.T) {
	inLeasedWorld(t, func(w *world, l *oneLease) {
		l.set(func() { l.slow = time.Hour })
		w.pool(web, "")
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		w.t.Cleanup(func() { // the workers have ended
			w.expectReports()
			w.expectWaits()
			w.expectCalls()
		})
	})
}
