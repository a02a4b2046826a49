// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/pool/diff"
)

// Reads of many load balancers are spread over the period; those of one load balancer's pools are
// not.
func TestLooksAreSpreadEvenly(t *testing.T) {
	now := start
	tenths := make([]int, 10)
	for i := range 1000 {
		at := NextResync(poolID(fmt.Sprintf("lb-%d", i), "web").Key(), now, period)
		if !at.After(now) || at.After(now.Add(period)) {
			t.Fatalf("pool %d is looked at %s from now", i, at.Sub(now))
		}
		if next := NextResync(poolID(fmt.Sprintf("lb-%d", i), "web").Key(), at, period); !next.Equal(at.Add(period)) {
			t.Fatalf("then %s later", next.Sub(at))
		}
		if other := NextResync(poolID(fmt.Sprintf("LB-%d", i), "other").Key(), now, period); !other.Equal(at) {
			t.Fatalf("another pool of load balancer %d is looked at %s later", i, other.Sub(at))
		}
		tenths[int(at.Sub(now)*10/(period+1))]++
	}
	for _, n := range tenths {
		if n < 60 || n > 140 {
			t.Errorf("1000 load balancers, by tenths of the period: %v", tenths)
			break
		}
	}
}

func TestLooksComeSoonAndThenEverLater(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	own := NextResync("a pool", now, period).Sub(now)
	for _, row := range []struct {
		since, period time.Duration // since it was given up; negative if it was not
		want          time.Duration
	}{
		{-1, period, own}, {0, period, time.Minute}, {30 * time.Second, period, 30 * time.Second},
		{time.Minute, period, 2 * time.Minute}, {3 * time.Minute, period, 4 * time.Minute},
		{7 * time.Minute, period, min(own, 8*time.Minute)}, {15 * time.Minute, period, own}, {100 * time.Hour, period, own},
		{0, time.Minute, NextResync("a pool", now, time.Minute).Sub(now)},
		{0, 61 * time.Second, min(time.Minute, NextResync("a pool", now, 61*time.Second).Sub(now))},
	} {
		trouble := time.Time{}
		if row.since >= 0 {
			trouble = now.Add(-row.since)
		}
		if got := nextCheck("a pool", now, row.period, trouble).Sub(now); got != row.want {
			t.Errorf("%+v: got %s", row, got)
		}
	}
	if own < 4*time.Minute {
		t.Fatalf("its own moment comes after %s: the rows are of no use", own)
	}
	if !nextCheck("a pool", now, 0, now).IsZero() {
		t.Error("without a period nobody looks")
	}
	before := now.Add(-time.Minute)
	for _, row := range []struct {
		before        time.Time
		outcome       diff.Outcome
		trouble, look bool
		want          time.Time
	}{
		{time.Time{}, diff.Terminal, true, false, now}, // given up
		{before, diff.Terminal, true, true, before},    // a check that failed, too
		{before, diff.Terminal, true, false, now},      // a new change was given up
		{before, diff.Written, false, true, time.Time{}},
		{before, diff.Unchanged, false, false, time.Time{}},
		{before, diff.Postponed, true, true, before},   // not a check
		{time.Time{}, diff.Unchanged, true, true, now}, // a lost write may land
	} {
		if got := UpdateErrorSince(row.before, row.outcome, row.trouble, row.look, now); !got.Equal(row.want) {
			t.Errorf("%+v: got %s", row, got)
		}
	}
}

// A machine's clock may be set back by hours; the time to a check does not change.
func TestALookIsNeverFurtherAwayThanAPeriod(t *testing.T) {
	now := time.Now() // with monotonic clock reading
	at := NextResync("a pool", now, period)
	if d := at.Sub(now); d <= 0 || d > period {
		t.Errorf("%v away", d)
	}
	if !at.Round(0).Equal(NextResync("a pool", now.Round(0), period)) {
		t.Error("another moment of the period")
	}
	if !strings.Contains(at.String(), "m=") {
		t.Error("the moment is one of the wall clock alone")
	}
}
