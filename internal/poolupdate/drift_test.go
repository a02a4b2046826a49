// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
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
			if r.Outcome != poolwrite.Unchanged || !r.Drift || len(r.Updated) > 0 || !r.ChangedAt.IsZero() {
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
	own := driftAfter("a pool", now, period).Sub(now)
	for _, row := range []struct {
		since, period time.Duration // since it was given up; below 0 for a pool that was not
		want          time.Duration
	}{
		{-1, period, own}, {0, period, time.Minute}, {30 * time.Second, period, 30 * time.Second},
		{time.Minute, period, 2 * time.Minute}, {3 * time.Minute, period, 4 * time.Minute},
		{7 * time.Minute, period, min(own, 8*time.Minute)}, {15 * time.Minute, period, own}, {100 * time.Hour, period, own},
		{0, time.Minute, driftAfter("a pool", now, time.Minute).Sub(now)},
		{0, 61 * time.Second, min(time.Minute, driftAfter("a pool", now, 61*time.Second).Sub(now))},
	} {
		trouble := time.Time{}
		if row.since >= 0 {
			trouble = now.Add(-row.since)
		}
		if got := lookAfter("a pool", now, row.period, trouble).Sub(now); got != row.want {
			t.Errorf("%+v: got %s", row, got)
		}
	}
	if own < 4*time.Minute {
		t.Fatalf("its own moment comes after %s: the rows are of no use", own)
	}
	if !lookAfter("a pool", now, 0, now).IsZero() {
		t.Error("without a period nobody looks")
	}
	before := now.Add(-time.Minute)
	for _, row := range []struct {
		before        time.Time
		outcome       poolwrite.Outcome
		trouble, look bool
		want          time.Time
	}{
		{time.Time{}, poolwrite.Terminal, true, false, now}, // given up
		{before, poolwrite.Terminal, true, true, before},    // a look that failed as well
		{before, poolwrite.Terminal, true, false, now},      // a new change was given up
		{before, poolwrite.Written, false, true, time.Time{}},
		{before, poolwrite.Unchanged, false, false, time.Time{}},
		{before, poolwrite.Postponed, true, true, before},   // that was no look
		{time.Time{}, poolwrite.Unchanged, true, true, now}, // a lost write may land
	} {
		if got := troubleSince(row.before, row.outcome, row.trouble, row.look, now); !got.Equal(row.want) {
			t.Errorf("%+v: got %s", row, got)
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
