// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// inLookedAtWorld sets up n pools of a load balancer, in sync, with drift checks and without
// batched updates.
func inLookedAtWorld(t *testing.T, n int, explanation func(w *whole, pools []lb.PoolID)) {
	inWholeWorldOf(t, n, func(c *Config) { c.ResyncPeriod = period }, func(w *whole, pools []lb.PoolID) {
		for _, id := range pools {
			w.set(func() { w.pool(id, "n1=10.0.0.1") })
			w.change(id, "n1=10.0.0.1")
		}
		w.wait(time.Minute)
		w.set(func() { w.calls, w.reports = nil, nil })
		explanation(w, pools)
	})
}

func (w *world) reads() (total int) {
	for _, call := range w.calls {
		if strings.Contains(call, " GET ") {
			total++
		}
	}
	return total
}

// All pools of a load balancer are checked by one read per period.
func TestOneReadServesAllLooks(t *testing.T) {
	inLookedAtWorld(t, 200, func(w *whole, pools []lb.PoolID) {
		w.wait(3 * period)
		if w.reads() != 3 || len(w.calls) != 3 {
			t.Errorf("%d reads in three periods, of %d calls", w.reads(), len(w.calls))
		}
		if len(w.reports) != 3*len(pools) || slices.ContainsFunc(w.reports, func(r Report) bool { return r.Outcome != diff.Unchanged || !r.Resync }) {
			t.Errorf("%d reports", len(w.reports))
		}
	})
}

// The pools that a starting process discovers one by one share a read. Pools with a different
// record do not wait.
func TestTheLooksOfAStartWaitForEachOther(t *testing.T) {
	inLookedAtWorld(t, 50, func(w *whole, pools []lb.PoolID) {
		for _, id := range pools {
			w.look(id, "n1=10.0.0.1")
			w.wait(50 * time.Millisecond)
		}
		w.wait(2 * schedule.CheckDebounce)
		if len(w.calls) != 1 || w.reads() != 1 {
			t.Errorf("calls: %q", w.calls)
		}
	})
}

// The wait is bounded; then they are checked in parts.
func TestLooksThatKeepComingWaitNoLonger(t *testing.T) {
	inLookedAtWorld(t, 50, func(w *whole, pools []lb.PoolID) {
		begun := time.Now()
		for i := 0; time.Since(begun) < schedule.MaxCheckDebounce+schedule.CheckDebounce; i++ {
			w.look(pools[i%len(pools)], "n1=10.0.0.1")
			w.wait(schedule.CheckDebounce / 2)
		}
		if w.reads() == 0 {
			t.Error("none was looked at")
		}
	})
}

// A check finds two pools that another client has changed: only these are written, separately.
func TestResyncRepairsForeignChange(t *testing.T) {
	inLookedAtWorld(t, 20, func(w *whole, pools []lb.PoolID) {
		w.set(func() {
			w.pool(pools[3], "vm=10.9.9.9")
			delete(w.pools, pools[4].Key())
		})
		w.wait(period)
		w.expectPool(pools[3], "vm=10.9.9.9 n1=10.0.0.1")
		if w.reads() != 3 { // of the load balancer and of the two pools
			t.Errorf("calls: %q", w.calls)
		}
		stale := slices.ContainsFunc(w.reports, func(r Report) bool {
			return r.Pool.Name == pools[4].Name && r.Outcome != diff.Unchanged
		})
		if len(w.reports) != len(pools) || !stale {
			t.Errorf("%d reports; of the one that is gone: %t", len(w.reports), stale)
		}
	})
}

// If the load balancer cannot be read, each pool is, once Azure allows it.
func TestALookThatFailsLeavesEachPoolToItself(t *testing.T) {
	inLookedAtWorld(t, 5, func(w *whole, pools []lb.PoolID) {
		w.set(func() {
			w.refuse = func(string) *armerror.Fault {
				return armerror.Classify(armerror.Failure{Status: 403}, errors.New("no"))
			}
		})
		w.wait(period)
		if len(w.reports) != len(pools) || w.reads() != 1+len(pools) {
			t.Errorf("%d reports after %q", len(w.reports), w.calls)
		}
	})
}

// A change ranks before checks.
func TestAChangeGoesAheadOfLooks(t *testing.T) {
	inLookedAtWorld(t, 20, func(w *whole, pools []lb.PoolID) {
		w.change(pools[0], "n1=10.0.0.1 n2=10.0.0.2")
		for _, id := range pools[1:] {
			w.look(id, "n1=10.0.0.1")
		}
		w.wait(10 * time.Second)
		if len(w.calls) < 3 || strings.Contains(w.calls[0], "balancer") || !strings.Contains(w.calls[len(w.calls)-1], "balancer") {
			t.Errorf("calls: %q", w.calls)
		}
	})
}

// A Retry-After of the shared read applies to its pools.
func TestALookThatIsThrottledHasItsPoolsWait(t *testing.T) {
	inLookedAtWorld(t, 5, func(w *whole, pools []lb.PoolID) {
		var until time.Time
		w.set(func() {
			w.refuse = func(string) *armerror.Fault {
				at := time.Now().Add(20 * time.Second)
				if until.IsZero() {
					until = at
				}
				return armerror.Classify(armerror.Failure{Status: 429, RetryAt: at}, errors.New("later"))
			}
		})
		w.wait(period)
		first := time.Time{}
		w.set(func() {
			for _, r := range w.reports {
				if first.IsZero() || r.At.Before(first) {
					first = r.At
				}
			}
			if until.IsZero() || len(w.reports) > 0 && first.Before(until) {
				t.Errorf("the first look ends at %s, and none was wanted before %s", first, until)
			}
		})
		w.wait(period)
		if len(w.reports) < len(pools) {
			t.Errorf("%d reports", len(w.reports))
		}
	})
}

// A pool that changes all the time does not prevent shared checks of the others.
func TestLooksAreSharedBesideAPoolThatChanges(t *testing.T) {
	inLookedAtWorld(t, 60, func(w *whole, pools []lb.PoolID) {
		for i := range int(period / (200 * time.Millisecond)) {
			w.change(pools[0], []string{"n1=10.0.0.1", "n2=10.0.0.2"}[i%2])
			w.wait(200 * time.Millisecond)
		}
		of := map[string]bool{}
		for _, call := range w.calls {
			if _, read, ok := strings.Cut(call, " GET "); ok && read != pools[0].Name {
				of[read] = true
			}
		}
		if len(of) != 1 {
			t.Errorf("reads of others than the pool that changes: %q", slices.Sorted(maps.Keys(of)))
		}
		w.reports, w.waits = nil, nil
	})
}
