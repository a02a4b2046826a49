// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
)

const period = 10 * time.Minute

// inSync gets a pool in sync with n1 and clears the traces.
func (w *world) inSync(id lb.PoolID) {
	w.pool(id, "n1=10.0.0.1")
	w.change(id, "n1=10.0.0.1")
	w.wait(10 * time.Second)
	w.set(func() { w.calls, w.reports = nil, nil })
}

func TestForeignChangeIsRepairedWithinPeriod(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.inSync(web)
		w.set(func() { w.pool(web, "vm=10.9.9.9") })
		w.wait(period)
		w.expectPool(web, "vm=10.9.9.9 n1=10.0.0.1")
		w.expectReports("web Written Updated:web")
	})
}

func TestQuietPoolIsReadOncePerPeriodWithoutEvent(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.inSync(web)
		w.wait(5 * period)
		if n := len(w.calls); n != 5 {
			t.Errorf("%d calls in five periods: %q", n, w.calls)
		}
		for _, r := range w.reports {
			if r.Outcome != diff.Unchanged || !r.Resync || len(r.Updated) > 0 || !r.ChangedAt.IsZero() {
				t.Errorf("%+v", r)
			}
		}
		w.lanes.Forget(web)
		w.set(func() { w.calls = nil })
		w.wait(2 * period)
		w.expectCalls()
	})
}

func TestAPeriodOfZeroNeverLooks(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.inSync(web)
		w.wait(100 * time.Hour)
		w.expectCalls()
	})
}

// After the retries are used up, silent attempts follow: the first after a minute, each after twice
// the previous delay, finally one per period. Only changes are reported.
func TestAPoolThatWasGivenUpIsTriedSilentlyEverLater(t *testing.T) {
	inDriftingWorld(t, 1, period, func(w *world) {
		w.pool(web, "")
		w.failing("PUT", -1, armerror.Failure{Status: 409, Codes: []string{"AnotherOperationInProgress"}})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		gaveUp := w.reports[1].At
		w.expectReports("web Retriable Retrying:web", "web Retriable Failed:web")
		w.wait(4 * period)
		var after []time.Duration
		for _, r := range w.reports {
			after = append(after, r.At.Sub(gaveUp))
		}
		for _, want := range []time.Duration{time.Minute, 3 * time.Minute, 7 * time.Minute, 15 * time.Minute} {
			if !slices.Contains(after, want) {
				t.Errorf("looked at after %v, not after %s", after, want)
			}
		}
		own := slices.DeleteFunc(slices.Clone(after), func(d time.Duration) bool { return d%time.Minute == 0 })
		if len(own) != 4 || len(after) != 8 || own[3]-own[0] != 3*period {
			t.Errorf("looked at after %v, want four looks at its own moment in the period and four besides", after)
		}
		w.reports = nil
		w.failing("PUT", -1, armerror.Failure{Status: 403, Codes: []string{"AuthorizationFailed"}})
		w.wait(2 * period)
		w.expectReports("web Terminal Failed:web", "web Terminal")
		w.failing("PUT", 0, armerror.Failure{})
		w.wait(period)
		w.expectReports("web Written Updated:web")
		w.expectPool(web, "n1=10.0.0.1")
		w.wait(period)
		w.expectReports("web Unchanged")
	})
}

// A pool that met four 500s is in sync within two intervals and two minutes.
func TestFour500sAreOverWithinTwoIntervalsAndTwoMinutes(t *testing.T) {
	for _, phase := range []time.Duration{0, time.Minute, 5 * time.Minute, 9 * time.Minute} {
		inDriftingWorld(t, 3, period, func(w *world) {
			w.wait(phase)
			w.pool(web, "")
			w.failing("PUT", 1, armerror.Failure{Status: 500}) // after the SDK's four requests
			w.change(web, "n1=10.0.0.1")
			changed := time.Now()
			w.wait(2*interval + 2*time.Minute)
			w.expectPool(web, "n1=10.0.0.1")
			t.Logf("changed %s after the start: in sync after %s", phase, w.reports[1].At.Sub(changed))
			w.reports = w.reports[:2] // a drift check may follow
			w.expectReports("web Terminal Failed:web", "web Written Updated:web")
		})
	}
}

// What a check finds and cannot fix at once is treated like a change.
func TestFailedCheckOfPoolInSyncIsRetriedAndReported(t *testing.T) {
	inDriftingWorld(t, 1, period, func(w *world) {
		w.inSync(web)
		w.set(func() { w.pool(web, "") })
		w.failing("PUT", 2, armerror.Failure{Status: 409})
		w.wait(period + time.Minute)
		w.expectReports("web Retriable Retrying:web", "web Retriable Failed:web", "web Written Updated:web")
	})
}

// Retry-After delays a check, too.
func TestALookWaitsForRetryAfter(t *testing.T) {
	inDriftingWorld(t, 0, period, func(w *world) {
		w.pool(web, "")
		w.failing("GET", 1, armerror.Failure{Status: 429, RetryAt: w.start.Add(3 * period)})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		if at := w.reports[0].NextCheckAt; at.Before(w.start.Add(3 * period)) {
			t.Errorf("promises a look %s after the start, and Azure asked for patience", at.Sub(w.start))
		}
		w.wait(3*period - 2*time.Second)
		w.expectReports("web Retriable Failed:web")
		w.expectCalls("+250ms GET web")
		w.wait(period)
		w.expectReports("web Written Updated:web", "web Unchanged") // the second one by its drift check
	})
}

// An irrelevant pool is not checked.
func TestPausedPoolIsNotRead(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.inSync(web)
		w.set(func() { w.gone["web"] = true })
		w.wait(3 * period)
		w.expectCalls()
		w.set(func() { w.gone["web"] = false })
		w.wait(period)
		w.expectReports("web Unchanged")
	})
}

// A postponed check is made later.
func TestALookThatIsPostponedIsNotLost(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.inSync(web)
		w.failing("READ LEDGER", 3, armerror.Failure{})
		w.wait(period)
		w.expectReports("web Postponed", "web Postponed", "web Postponed", "web Unchanged")
	})
}

// An operation without a change is reported like a check: an error for which a change was given up
// is not repeated.
func TestResyncedPoolReportsNothingTwice(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("GET", 3, armerror.Failure{Status: 403})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectReports("web Terminal Failed:web")
		w.look(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectReports("web Terminal")
		w.look(web, "n1=10.0.0.1")
		w.change(web, "n1=10.0.0.1") // before the check, so that a change exists
		w.wait(time.Minute)
		w.expectReports("web Terminal Failed:web")
		w.look(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectReports("web Written Updated:web")
	})
}

// A check behind a closed gate is silent, too.
func TestALookBehindAGateIsNoBacklog(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.inSync(web)
		w.set(func() { w.gates = w.start.Add(2 * period) })
		w.wait(period)
		if b := w.lanes.Backlog(); b != (Backlog{}) {
			t.Errorf("a look that waits for a gate counts as %+v", b)
		}
		w.expectWaits()
		w.change(web, "n2=10.0.0.2") // replaces the check
		w.wait(period + time.Minute)
		w.expectReports("web Written Updated:web")
	})
}
