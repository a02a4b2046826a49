// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// set returns the addresses 10.0.0.<n>.
func set(hosts ...int) addresses {
	a := addresses{}
	for _, n := range hosts {
		a[netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})] = fmt.Sprintf("node-%d", n) //nolint:gosec // small
	}
	return a
}

// followed is a pool whose history starts at zero time.
type followed struct {
	*poolHistory
	began time.Time
}

func follow(foreign ...int) *followed {
	return &followed{newPoolHistory(set(foreign...)), time.Unix(0, 0)}
}

func (f *followed) at(seconds float64) time.Time {
	return f.began.Add(time.Duration(seconds * float64(time.Second)))
}

func (f *followed) wants(seconds float64, hosts ...int) { f.want(f.at(seconds), set(hosts...)) }
func (f *followed) shows(seconds float64, hosts ...int) { f.show(f.at(seconds), set(hosts...), false) }

func (f *followed) expectLags(t *testing.T, seconds ...float64) {
	t.Helper()
	var want []time.Duration
	for _, s := range seconds {
		want = append(want, time.Duration(s*float64(time.Second)))
	}
	var lags []time.Duration
	for _, l := range f.lags {
		lags = append(lags, l.Duration)
	}
	if !slices.Equal(lags, want) {
		t.Errorf("lags %v, want %v", lags, want)
	}
}

func TestLagRunsUntilThePoolShowsTheNewestTruth(t *testing.T) {
	pool := follow()
	pool.wants(1, 1, 2)
	pool.shows(2, 1)
	pool.wants(3, 1, 2, 3)
	pool.shows(4, 1, 2) // the first desired state, too late
	pool.expectLags(t)
	pool.shows(5, 1, 2, 3)
	pool.expectLags(t, 4, 2)
}

func TestLagRunsUntilAzureIsDone(t *testing.T) {
	pool := follow()
	pool.wants(1, 1)
	pool.show(pool.at(2), set(1), true)
	if pool.expectLags(t); pool.level() {
		t.Error("level while Azure works on it")
	}
	pool.shows(3, 1)
	pool.expectLags(t, 2)
}

func TestEventsThatChangeNothingAreNoChanges(t *testing.T) {
	pool := follow()
	pool.wants(1)
	pool.wants(2, 1)
	pool.wants(3, 1)
	pool.shows(4, 1)
	pool.shows(5, 1)
	pool.expectLags(t, 2)
	if pool.changes != 1 {
		t.Errorf("%d changes", pool.changes)
	}
}

func TestAChangeTakenBackIsSettledByTheNextLook(t *testing.T) {
	pool := follow()
	pool.wants(1, 1)
	pool.shows(2, 1)
	pool.wants(3, 1, 2)
	pool.wants(4, 1)
	pool.shows(5, 1)
	pool.expectLags(t, 1, 2, 1)
}

func TestAPendingChangeIsAsLateAsTheEnd(t *testing.T) {
	pool := follow()
	pool.wants(1, 1)
	if got := pool.summary(pool.at(31)); got.LagMax != 30_000 || got.Lost != 1 {
		t.Errorf("%+v", got)
	}
}

func TestGap(t *testing.T) {
	pool := follow(200)
	pool.wants(1, 1, 2)
	pool.shows(2, 2, 3)
	got := pool.gap()
	if fmt.Sprint(got.missing, got.surplus, got.foreignMissing) != "[10.0.0.1] [10.0.0.3] [10.0.0.200]" {
		t.Errorf("%+v", got)
	}
	if sum := pool.summary(pool.at(3)); sum.Lost != 1 || sum.Surplus != 1 || sum.ForeignLost != 1 {
		t.Errorf("%+v", sum)
	}
	pool.shows(4, 1, 2, 200)
	if !pool.level() {
		t.Errorf("%+v", pool.gap())
	}
}

func TestTakenOutWhileWanted(t *testing.T) {
	pool := follow(200)
	pool.wants(1, 1, 2)
	pool.shows(2, 1, 2, 200)
	pool.wants(10, 1, 2, 3)
	pool.shows(10.5, 1, 2, 3, 200)
	pool.shows(11, 200) // 1 and 2 were desired for long; 3 may be a write in flight
	if pool.taken != 2 || pool.foreignGone != 0 {
		t.Errorf("taken %d, foreign %d", pool.taken, pool.foreignGone)
	}
	pool.shows(12, 1, 2, 3) // all back except the foreign one
	pool.shows(13, 1, 2, 3, 200)
	if sum := pool.summary(pool.at(14)); sum.Lost != 2 || sum.ForeignLost != 1 {
		t.Errorf("a loss that was repaired is a loss: %+v", sum)
	}
}

func TestRemovalIsNoLoss(t *testing.T) {
	pool := follow()
	pool.wants(1, 1, 2)
	pool.shows(2, 1, 2)
	pool.wants(10, 1)
	pool.shows(11, 1)
	if pool.taken != 0 || !pool.level() {
		t.Errorf("taken %d", pool.taken)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[len(hundred)-1-i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		of   []time.Duration
		p    float64
		want time.Duration
	}{
		{nil, 0.5, 0}, {[]time.Duration{7}, 0.5, 7}, {[]time.Duration{7}, 0.99, 7}, {[]time.Duration{2, 1}, 0.5, 1},
		{hundred, 0.5, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1},
	} {
		if got := percentile(c.of, c.p); got != c.want {
			t.Errorf("percentile %v of %d durations is %d, want %d", c.p, len(c.of), got, c.want)
		}
	}
}

// Each change has one lag once the pool has caught up; no lag is negative or shorter than the age
// of its change.
func TestEveryChangeHasOneLag(t *testing.T) {
	hosts := rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 0, 6, rapid.ID[int])
	rapid.Check(t, func(t *rapid.T) {
		pool := follow(200)
		now := 0.0
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			now += rapid.Float64Range(0.01, 5).Draw(t, "pause")
			if h := hosts.Draw(t, "hosts"); rapid.Bool().Draw(t, "truth") {
				pool.wants(now, h...)
			} else {
				pool.show(pool.at(now), set(append(h, 200)...), rapid.Bool().Draw(t, "busy"))
			}
			if len(pool.lags)+len(pool.pending) != pool.changes {
				t.Fatalf("%d changes, %d lags, %d pending", pool.changes, len(pool.lags), len(pool.pending))
			}
		}
		all := set(200)
		for ip, name := range pool.wanted {
			all[ip] = name
		}
		pool.show(pool.at(now+1), all, false)
		if !pool.level() || len(pool.lags) != pool.changes || slices.ContainsFunc(pool.lags, func(d lag) bool { return d.Duration <= 0 }) {
			t.Fatalf("level %v, %d changes, lags %v", pool.level(), pool.changes, pool.lags)
		}
	})
}
