// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

const period = 10 * time.Minute

// level brings a pool level with n1 and forgets how.
func (w *world) level(id lb.PoolID) {
	w.pool(id, "n1=10.0.0.1")
	w.change(id, "n1=10.0.0.1")
	w.wait(10 * time.Second)
	w.set(func() { w.calls, w.reports = nil, nil })
}

func TestAPoolThatSomebodyChangedIsLevelAfterOnePeriod(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.level(web)
		w.set(func() { w.pool(web, "vm=10.9.9.9") })
		w.wait(period)
		w.expectPool(web, "vm=10.9.9.9 n1=10.0.0.1")
		w.expectReports("web Written Updated:web")
	})
}

func TestAQuietPoolIsReadOnceAPeriodAndNobodyIsTold(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.level(web)
		w.wait(5 * period)
		if n := len(w.calls); n != 5 {
			t.Errorf("%d calls in five periods: %q", n, w.calls)
		}
		for _, r := range w.reports {
			if r.Outcome != Unchanged || !r.Drift || len(r.Updated) > 0 || !r.ChangedAt.IsZero() {
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
		w.level(web)
		w.wait(100 * time.Hour)
		w.expectCalls()
	})
}

// The reads of many pools are spread over the period.
func TestLooksAreSpreadEvenly(t *testing.T) {
	now := start
	tenths := make([]int, 10)
	for i := range 1000 {
		at := driftAfter(poolID("kubernetes", fmt.Sprintf("pool-%d", i)).Key(), now, period)
		if !at.After(now) || at.After(now.Add(period)) {
			t.Fatalf("pool %d is looked at %s from now", i, at.Sub(now))
		}
		if again := driftAfter(poolID("kubernetes", fmt.Sprintf("pool-%d", i)).Key(), at, period); !again.Equal(at.Add(period)) {
			t.Fatalf("then %s later", again.Sub(at))
		}
		tenths[int(at.Sub(now)*10/(period+1))]++
	}
	for _, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("1000 pools, by tenths of the period: %v", tenths)
			break
		}
	}
}

// A budget that ran out is not the end: silent attempts follow, the first after a minute, each
// after twice as long, and in the end one a period. There is a word only when there is news.
func TestAPoolThatWasGivenUpIsTriedSilentlyEverLater(t *testing.T) {
	inDriftingWorld(t, 1, period, func(w *world) {
		w.pool(web, "")
		w.failing("PUT", -1, fault.Answer{Status: 409, Codes: []string{"AnotherOperationInProgress"}})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		gaveUp := w.reports[1].At
		w.expectReports("web Retriable Retrying:web", "web Retriable Failed:web")
		w.wait(4 * period)
		var after []time.Duration
		for _, r := range w.reports {
			after = append(after, r.At.Sub(gaveUp))
		}
		if got := fmt.Sprint(after[:4]); got != "[1m0s 3m0s 7m0s 15m0s]" {
			t.Errorf("looked at after %v", after)
		}
		for i := 4; i < len(after); i++ { // at its own moment in the period
			if wait := after[i] - after[i-1]; i > 4 && wait != period || wait > period {
				t.Errorf("looked at after %v", after)
			}
		}
		w.reports = nil
		w.failing("PUT", -1, fault.Answer{Status: 403, Codes: []string{"AuthorizationFailed"}})
		w.wait(2 * period)
		w.expectReports("web Terminal Failed:web", "web Terminal")
		w.failing("PUT", 0, fault.Answer{})
		w.wait(period)
		w.expectReports("web Written Updated:web")
		w.expectPool(web, "n1=10.0.0.1")
		w.wait(period)
		w.expectReports("web Unchanged")
	})
}

// What was promised: a pool that met four 500s is level within two intervals and two minutes.
func TestFour500sAreOverWithinTwoIntervalsAndTwoMinutes(t *testing.T) {
	for _, phase := range []time.Duration{0, time.Minute, 5 * time.Minute, 9 * time.Minute} {
		inDriftingWorld(t, 3, period, func(w *world) {
			w.wait(phase)
			w.pool(web, "")
			w.failing("PUT", 1, fault.Answer{Status: 500}) // after the SDK has asked four times
			w.change(web, "n1=10.0.0.1")
			changed := time.Now()
			w.wait(2*interval + 2*time.Minute)
			w.expectPool(web, "n1=10.0.0.1")
			t.Logf("changed %s after the start: level after %s", phase, w.reports[1].At.Sub(changed))
			w.reports = w.reports[:2] // a look at its own moment may follow
			w.expectReports("web Terminal Failed:web", "web Written Updated:web")
		})
	}
}

func TestLooksComeSoonAndThenEverLater(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		looks  int
		period time.Duration
		want   time.Duration // 0 for its own moment in the period
	}{
		{0, period, 0}, {1, period, time.Minute}, {2, period, 2 * time.Minute}, {3, period, 4 * time.Minute}, {4, period, 8 * time.Minute},
		{5, period, 0}, {1000, period, 0}, {1, time.Minute, 0}, {1, 30 * time.Second, 0}, {1, 61 * time.Second, time.Minute},
	} {
		want := driftAfter("a pool", now, row.period)
		if row.want > 0 {
			want = now.Add(row.want)
		}
		if got := lookAfter("a pool", now, row.period, row.looks); !got.Equal(want) {
			t.Errorf("%+v: got %s", row, got.Sub(now))
		}
	}
	if !lookAfter("a pool", now, 0, 1).IsZero() {
		t.Error("without a period nobody looks")
	}
	for _, row := range []struct {
		before        int
		outcome       Outcome
		trouble, look bool
		want          int
	}{
		{0, Terminal, true, false, 1}, // given up
		{1, Terminal, true, true, 2},  // a look that failed as well
		{3, Terminal, true, false, 1}, // a new change was given up
		{3, Written, false, true, 0},
		{3, Unchanged, false, false, 0},
		{3, Postponed, true, true, 3}, // that was no look
		{0, Unchanged, true, true, 1}, // a lost write may land
	} {
		if got := looksSoon(row.before, row.outcome, row.trouble, row.look); got != row.want {
			t.Errorf("%+v: got %d", row, got)
		}
	}
}

// What a look finds and cannot mend at once is a change like any other.
func TestALookThatFailsOnAPoolThatWasLevelHasABudgetAndSpeaks(t *testing.T) {
	inDriftingWorld(t, 1, period, func(w *world) {
		w.level(web)
		w.set(func() { w.pool(web, "") })
		w.failing("PUT", 2, fault.Answer{Status: 409})
		w.wait(period + time.Minute)
		w.expectReports("web Retriable Retrying:web", "web Retriable Failed:web", "web Written Updated:web")
	})
}

// A Retry-After holds a look, too, however long it is.
func TestALookWaitsForRetryAfter(t *testing.T) {
	inDriftingWorld(t, 0, period, func(w *world) {
		w.pool(web, "")
		w.failing("GET", 1, fault.Answer{Status: 429, RetryAt: w.start.Add(3 * period)})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Second)
		if at := w.reports[0].LookAt; at.Before(w.start.Add(3 * period)) {
			t.Errorf("promises a look %s after the start, and Azure asked for patience", at.Sub(w.start))
		}
		w.wait(3*period - 2*time.Second)
		w.expectReports("web Retriable Failed:web")
		w.expectCalls("+250ms GET web")
		w.wait(period)
		w.expectReports("web Written Updated:web", "web Unchanged") // the second by its own moment
	})
}

// A look goes last, takes nobody's pass, and is no operation that waits.
func TestALookStandsBackBehindChanges(t *testing.T) {
	fresh := group{pool: "fresh", fresh: true, firstQueued: seconds(30)}
	retry := group{pool: "retry", retry: true, history: history{lastAttempt: seconds(0)}}
	look := group{pool: "a look", firstQueued: seconds(25)}
	if pick, _, _ := admit([]group{look, retry, fresh}, seconds(50), interval); pick != "fresh" {
		t.Errorf("%s goes first", pick)
	}
	if pick, _, _ := admit([]group{look, retry}, seconds(50), interval); pick != "retry" {
		t.Errorf("%s goes before a retry", pick)
	}
	if pick, _, _ := admit([]group{look, fresh}, seconds(500), interval); pick != "fresh" {
		t.Errorf("%s goes first, though nobody waits for the look", pick)
	}
	if pick, _, _ := admit([]group{look, fresh}, seconds(25+looksWait*30), interval); pick != "a look" {
		t.Errorf("%s goes first, though the look has waited for ten minutes", pick)
	}
	inDriftingWorld(t, 3, period, func(w *world) {
		w.level(web)
		w.set(func() { w.gates = w.start.Add(2 * period) })
		w.wait(period)
		if b := w.lanes.Backlog(); b != (Backlog{}) {
			t.Errorf("a look that waits for a gate counts as %+v", b)
		}
		w.expectWaits()
		w.change(web, "n2=10.0.0.2") // takes the place of the look
		w.wait(period + time.Minute)
		w.expectReports("web Written Updated:web")
	})
}

// Nothing that is not relevant any more is looked at.
func TestNobodyLooksAtAPausedPool(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.level(web)
		w.set(func() { w.gone["web"] = true })
		w.wait(3 * period)
		w.expectCalls()
		w.set(func() { w.gone["web"] = false })
		w.wait(period)
		w.expectReports("web Unchanged")
	})
}

// A look that something of our own holds up is made when that is over.
func TestALookThatIsPostponedIsNotLost(t *testing.T) {
	inDriftingWorld(t, 3, period, func(w *world) {
		w.level(web)
		w.failing("READ LEDGER", 3, fault.Answer{})
		w.wait(period)
		w.expectReports("web Postponed", "web Postponed", "web Postponed", "web Unchanged")
	})
}

// What is asked for without a change is told like a look: a change that was given up for
// the same error is not given up once more.
func TestAPoolThatIsOnlyLookedAtTellsNothingTwice(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "")
		w.failing("GET", 3, fault.Answer{Status: 403})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectReports("web Terminal Failed:web")
		w.look(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectReports("web Terminal")
		w.look(web, "n1=10.0.0.1")
		w.change(web, "n1=10.0.0.1") // before the look: now there is a change
		w.wait(time.Minute)
		w.expectReports("web Terminal Failed:web")
		w.look(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectReports("web Written Updated:web")
	})
}

// The clock of a machine may be set back by hours; a look is a distance away.
func TestALookIsNeverFurtherAwayThanAPeriod(t *testing.T) {
	now := time.Now() // with its monotonic reading
	at := driftAfter("a pool", now, period)
	if d := at.Sub(now); d <= 0 || d > period {
		t.Errorf("%v away", d)
	}
	if !at.Round(0).Equal(driftAfter("a pool", now.Round(0), period)) {
		t.Error("another moment of the period")
	}
	if !strings.Contains(at.String(), "m=") {
		t.Error("the moment is one of the wall clock alone")
	}
}
