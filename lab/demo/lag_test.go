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

// addressSet returns the addresses 10.0.0.<n>.
func addressSet(hosts ...int) addresses {
	a := addresses{}
	for _, n := range hosts {
		a[netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})] = fmt.Sprintf("node-%d", n) //nolint:gosec // small
	}
	return a
}

// trackedPool is a pool with a history that starts at zero time.
type trackedPool struct {
	*poolHistory
	began time.Time
}

func newFollowed(foreign ...int) *trackedPool {
	return &trackedPool{newPoolHistory(addressSet(foreign...)), time.Unix(0, 0)}
}

func (p *trackedPool) at(seconds float64) time.Time {
	return p.began.Add(time.Duration(seconds * float64(time.Second)))
}

func (p *trackedPool) recordWanted(seconds float64, hosts ...int) {
	p.recordDesired(p.at(seconds), addressSet(hosts...))
}
func (p *trackedPool) recordShown(seconds float64, hosts ...int) {
	p.recordActual(p.at(seconds), addressSet(hosts...), false)
}

func (p *trackedPool) expectLags(t *testing.T, seconds ...float64) {
	t.Helper()
	var want []time.Duration
	for _, s := range seconds {
		want = append(want, time.Duration(s*float64(time.Second)))
	}
	var lags []time.Duration
	for _, l := range p.syncTimes {
		lags = append(lags, l.Duration)
	}
	if !slices.Equal(lags, want) {
		t.Errorf("lags %v, want %v", lags, want)
	}
}

func TestLagRunsUntilThePoolShowsTheNewestTruth(t *testing.T) {
	pool := newFollowed()
	pool.recordWanted(1, 1, 2)
	pool.recordShown(2, 1)
	pool.recordWanted(3, 1, 2, 3)
	pool.recordShown(4, 1, 2) // the first desired state, too late
	pool.expectLags(t)
	pool.recordShown(5, 1, 2, 3)
	pool.expectLags(t, 4, 2)
}

func TestLagRunsUntilAzureIsDone(t *testing.T) {
	pool := newFollowed()
	pool.recordWanted(1, 1)
	pool.recordActual(pool.at(2), addressSet(1), true)
	if pool.expectLags(t); pool.isInSync() {
		t.Error("in sync while Azure works on it")
	}
	pool.recordShown(3, 1)
	pool.expectLags(t, 2)
}

func TestEventsThatChangeNothingAreNoChanges(t *testing.T) {
	pool := newFollowed()
	pool.recordWanted(1)
	pool.recordWanted(2, 1)
	pool.recordWanted(3, 1)
	pool.recordShown(4, 1)
	pool.recordShown(5, 1)
	pool.expectLags(t, 2)
	if pool.changes != 1 {
		t.Errorf("%d changes", pool.changes)
	}
}

func TestAChangeTakenBackIsSettledByTheNextLook(t *testing.T) {
	pool := newFollowed()
	pool.recordWanted(1, 1)
	pool.recordShown(2, 1)
	pool.recordWanted(3, 1, 2)
	pool.recordWanted(4, 1)
	pool.recordShown(5, 1)
	pool.expectLags(t, 1, 2, 1)
}

func TestAPendingChangeIsAsLateAsTheEnd(t *testing.T) {
	pool := newFollowed()
	pool.recordWanted(1, 1)
	if got := pool.newSummary(pool.at(31)); got.LagMax != 30_000 || got.Lost != 1 {
		t.Errorf("%+v", got)
	}
}

func TestGap(t *testing.T) {
	pool := newFollowed(200)
	pool.recordWanted(1, 1, 2)
	pool.recordShown(2, 2, 3)
	got := pool.memberDiff()
	if fmt.Sprint(got.missing, got.extra, got.foreignMissing) != "[10.0.0.1] [10.0.0.3] [10.0.0.200]" {
		t.Errorf("%+v", got)
	}
	if sum := pool.newSummary(pool.at(3)); sum.Lost != 1 || sum.Surplus != 1 || sum.ForeignLost != 1 {
		t.Errorf("%+v", sum)
	}
	pool.recordShown(4, 1, 2, 200)
	if !pool.isInSync() {
		t.Errorf("%+v", pool.memberDiff())
	}
}

func TestTakenOutWhileWanted(t *testing.T) {
	pool := newFollowed(200)
	pool.recordWanted(1, 1, 2)
	pool.recordShown(2, 1, 2, 200)
	pool.recordWanted(10, 1, 2, 3)
	pool.recordShown(10.5, 1, 2, 3, 200)
	pool.recordShown(11, 200) // 1 and 2 were desired for long; 3 may be a write in flight
	if len(pool.removed) != 2 || pool.foreignRemoved != 0 {
		t.Errorf("removed %v, foreign %d", pool.removed, pool.foreignRemoved)
	}
	pool.recordShown(12, 1, 2, 3) // all back except the foreign one
	pool.recordShown(13, 1, 2, 3, 200)
	if sum := pool.newSummary(pool.at(14)); sum.Lost != 2 || sum.ForeignLost != 1 {
		t.Errorf("a loss that was repaired is a loss: %+v", sum)
	}
}

func TestRemovalIsNoLoss(t *testing.T) {
	pool := newFollowed()
	pool.recordWanted(1, 1, 2)
	pool.recordShown(2, 1, 2)
	pool.recordWanted(10, 1)
	pool.recordShown(11, 1)
	if pool.removedCount != 0 || !pool.isInSync() {
		t.Errorf("taken %d", pool.removedCount)
	}
}

// The controller may see a change before this observer does, but not long before.
func TestRemovalBeforeItIsObserved(t *testing.T) {
	for seconds, lost := range map[float64]int{10.5: 0, 15: 1} {
		pool := newFollowed()
		pool.recordWanted(1, 1, 2)
		pool.recordShown(2, 1, 2)
		pool.recordShown(10, 1)
		pool.recordWanted(seconds, 1)
		if sum := pool.newSummary(pool.at(20)); sum.Lost != lost || sum.Surplus != 0 {
			t.Errorf("desired until second %g, removed in second 10: %+v, want %d lost", seconds, sum, lost)
		}
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
		if got := durationQuantile(c.of, c.p); got != c.want {
			t.Errorf("percentile %v of %d durations is %d, want %d", c.p, len(c.of), got, c.want)
		}
	}
}

// Each change has one lag once the pool has caught up; no lag is negative or shorter than the age
// of its change.
func TestEveryChangeHasOneLag(t *testing.T) {
	hosts := rapid.SliceOfNDistinct(rapid.IntRange(1, 6), 0, 6, rapid.ID[int])
	rapid.Check(t, func(t *rapid.T) {
		pool := newFollowed(200)
		now := 0.0
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			now += rapid.Float64Range(0.01, 5).Draw(t, "pause")
			if h := hosts.Draw(t, "hosts"); rapid.Bool().Draw(t, "truth") {
				pool.recordWanted(now, h...)
			} else {
				pool.recordActual(pool.at(now), addressSet(append(h, 200)...), rapid.Bool().Draw(t, "busy"))
			}
			if len(pool.syncTimes)+len(pool.pending) != pool.changes {
				t.Fatalf("%d changes, %d lags, %d pending", pool.changes, len(pool.syncTimes), len(pool.pending))
			}
		}
		addresses := addressSet(200)
		for ip, name := range pool.desired {
			addresses[ip] = name
		}
		pool.recordActual(pool.at(now+1), addresses, false)
		if !pool.isInSync() || len(pool.syncTimes) != pool.changes || slices.ContainsFunc(pool.syncTimes, func(d syncTime) bool { return d.Duration <= 0 }) {
			t.Fatalf("in sync %v, %d changes, lags %v", pool.isInSync(), pool.changes, pool.syncTimes)
		}
	})
}
