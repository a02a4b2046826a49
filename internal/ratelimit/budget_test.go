// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func aPool(n int) lb.PoolKey { return lb.PoolKey(fmt.Sprintf("p%d", n)) }

// world simulates pools that change and are written as soon as allowed.
type world struct {
	*Budget
	now     time.Time
	waits   map[lb.PoolKey]time.Time // when a pool's oldest change came
	changes map[lb.PoolKey]int       // number of waiting changes
	last    map[lb.PoolKey]time.Time // last write of a pool
	written []time.Time
}

func newWorld(share float64, interval time.Duration) *world {
	return &world{Budget: NewBudget(share, interval), now: start, waits: map[lb.PoolKey]time.Time{}, changes: map[lb.PoolKey]int{}, last: map[lb.PoolKey]time.Time{}}
}

// isDue reports whether a pool may be written, and whether that is early, within an interval of its
// last write.
func (w *world) isDue(pool lb.PoolKey) (due, early bool) {
	last, before := w.last[pool]
	if !before {
		return true, false
	}
	early = w.now.Sub(last) < w.interval
	return !early || w.now.Sub(w.waits[pool]) >= w.PaceAt(w.now).ScheduleFor(pool).HoldFor(w.changes[pool]), early
}

func (w *world) write(pool lb.PoolKey) {
	delete(w.waits, pool)
	delete(w.changes, pool)
	w.CountWrite(w.now)
	w.last[pool] = w.now
	w.written = append(w.written, w.now)
}

func (w *world) change(pool lb.PoolKey) {
	w.CountChange(pool, "", w.now)
	w.changes[pool]++
	if w.waits[pool].IsZero() {
		w.waits[pool] = w.now
	}
}

// lately returns the number of writes in the last five minutes.
func (w *world) lately() int {
	n := 0
	for _, at := range w.written {
		if w.now.Sub(at) < 5*time.Minute {
			n++
		}
	}
	return n
}

// A pool not written for an interval is never paced, no wait exceeds the interval, and early writes
// never make Weir exceed its share of any five minutes, for any share, report of Azure and change
// rate.
func TestLawPacing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.SampledFrom([]float64{0, 0.02, 0.1, 0.5, 1}).Draw(t, "share")
		interval := time.Duration(rapid.SampledFrom([]int{1, 5, 30, 120}).Draw(t, "interval")) * time.Second
		w := newWorld(share, interval)
		pools := rapid.IntRange(1, 12).Draw(t, "pools")
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			switch rapid.IntRange(0, 40).Draw(t, "what") {
			case 0:
				w.now = w.now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "s")) * time.Second)
			case 1:
				w.SetRemaining(Remaining{Caller: rapid.IntRange(-1, 300).Draw(t, "caller"), Subscription: rapid.IntRange(-1, 16500).Draw(t, "all")}, w.now)
			case 2:
				w.CountWrite(w.now) // another write by Weir
				w.written = append(w.written, w.now)
			default:
				w.change(aPool(rapid.IntRange(0, pools-1).Draw(t, "pool")))
			}
			for n := range pools {
				pool := aPool(n)
				if w.waits[pool].IsZero() {
					continue
				}
				due, early := w.isDue(pool)
				if !due && !early {
					t.Fatalf("%s waits for its pace an interval after its last write", pool)
				}
				if !due {
					continue
				}
				w.write(pool)
				if n := w.lately(); early && float64(n) > share*1000 {
					t.Fatalf("an early write is the %dth in five minutes, of %v", n, share*1000)
				}
			}
		}
	})
}

// A smaller remainder never shortens a wait.
func TestLawMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		interval := 30 * time.Second
		share := rapid.Float64Range(0, 1).Draw(t, "share")
		more, less := NewBudget(share, interval), NewBudget(share*rapid.Float64Range(0.5, 1).Draw(t, "of the share"), interval)
		now := start
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond)
			pool := aPool(rapid.IntRange(0, 3).Draw(t, "pool"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				more.CountChange(pool, "", now)
				less.CountChange(pool, "", now)
			case 1:
				remaining := rapid.IntRange(0, 200).Draw(t, "left")
				more.SetRemaining(Remaining{remaining, -1}, now)
				less.SetRemaining(Remaining{rapid.IntRange(0, remaining).Draw(t, "less"), -1}, now)
			case 2:
				more.CountWrite(now)
				less.CountWrite(now)
			case 3:
				less.CountWrite(now)
			}
			changes := rapid.IntRange(1, 9).Draw(t, "changes")
			long, short := less.PaceAt(now).ScheduleFor(pool).HoldFor(changes), more.PaceAt(now).ScheduleFor(pool).HoldFor(changes)
			if long < short && less.fleet.current <= more.fleet.current { // a lowered share follows what was spent
				t.Fatalf("with less left %s waits %s, with more %s", pool, long, short)
			}
		}
	})
}

// steady simulates pools that change every second, with writes of the given duration. It returns
// the maximum of writes in five minutes over half an hour, and the final time between a pool's
// writes.
func steady(w *world, pools int, lasts time.Duration) (limit int, mean time.Duration) {
	busy := map[lb.PoolKey]time.Time{}
	var gaps, n time.Duration
	for w.now.Before(start.Add(30 * time.Minute)) {
		w.now = w.now.Add(time.Second)
		for i := range pools {
			pool := aPool(i)
			w.change(pool)
			if busy[pool].After(w.now) {
				continue
			}
			if due, _ := w.isDue(pool); due {
				if before := w.last[pool]; w.now.Sub(start) > 15*time.Minute {
					gaps, n = gaps+w.now.Sub(before), n+1
				}
				w.write(pool)
				busy[pool] = w.now.Add(lasts)
			}
		}
		limit = max(limit, w.lately())
	}
	return limit, gaps / max(n, 1)
}

// Busy pools use exactly what is available; the optimum is an even pace.
func TestSteadyChurnSpendsItsShare(t *testing.T) {
	for _, tt := range []struct {
		share float64
		pools int
	}{{0.5, 1}, {0.5, 5}, {0.5, 20}, {0.5, 45}, {0.1, 5}, {0.1, 9}, {0, 5}} {
		w := newWorld(tt.share, 30*time.Second)
		limit, mean := steady(w, tt.pools, 2*time.Second)
		best := max(2*time.Second, time.Duration(float64(5*time.Minute)*float64(tt.pools)/max(tt.share*1000, 0.01)))
		best = min(best, 30*time.Second)
		t.Logf("share %v, %d pools: at most %d in five minutes, one each %s, where %s is possible", tt.share, tt.pools, limit, mean, best)
		if float64(limit) > max(tt.share*1000, float64(tt.pools)*11) {
			t.Errorf("share %v, %d pools: %d writes in five minutes", tt.share, tt.pools, limit)
		}
		if mean > best*12/10+time.Second {
			t.Errorf("share %v, %d pools: one each %s, and %s is possible", tt.share, tt.pools, mean, best)
		}
	}
}

// Without knowledge of other clients, Azure's reports decide.
func TestReportedQuotaDecides(t *testing.T) {
	pool, interval := aPool(0), 30*time.Second
	for _, tt := range []struct {
		about    string
		left     Remaining
		paced    bool
		withhold time.Duration // since the report
	}{
		{"nothing is told", Remaining{-1, -1}, false, 0},
		{"plenty is left", Remaining{199, 2999}, false, 0},
		{"the caller's is empty", Remaining{0, 2999}, true, 0},
		{"everybody's is empty", Remaining{199, 0}, true, 0},
		{"it comes back", Remaining{0, -1}, false, 20 * time.Second},
	} {
		b := NewBudget(0.5, interval)
		b.CountChange(pool, "", start)
		b.SetRemaining(tt.left, start)
		hold := b.PaceAt(start.Add(tt.withhold)).ScheduleFor(pool).HoldFor(1)
		if paced := hold == interval; paced != tt.paced || !paced && hold > time.Second {
			t.Errorf("%s: %s", tt.about, hold)
		}
	}
}

// Pools that change more often get more of what is left, proportional to the square root.
func TestBusierPoolIsWrittenMoreOften(t *testing.T) {
	b := NewBudget(0.05, 30*time.Second)
	now := start
	for n := range 40 {
		now = now.Add(250 * time.Millisecond)
		b.CountChange(aPool(0), "", now)
		if n%4 == 0 {
			b.CountChange(aPool(1), "", now)
		}
	}
	for range 5 {
		b.CountWrite(now)
	}
	pace := b.PaceAt(now)
	if busy, calm := pace.ScheduleFor(aPool(0)).writeInterval, pace.ScheduleFor(aPool(1)).writeInterval; busy >= calm || calm > 2*busy+time.Second {
		t.Errorf("changed 40 times: %s; 10 times: %s", busy, calm)
	}
}
