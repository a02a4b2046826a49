// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The share is between its floor and the configured one. One used-up quota lowers it once, to between 0.3 and 0.6 of it
// or the floor; without one it never falls.
func TestLawOfTheShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		configured := rapid.SampledFrom([]float64{0, 0.005, 0.05, 0.5, 1}).Draw(t, "share")
		b, now := NewBudget(configured, 30*time.Second), start
		var quotaBack time.Time
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 60_000).Draw(t, "ms")) * time.Millisecond)
			_, before, _ := b.UsageAt(now)
			throttled := rapid.IntRange(0, 9).Draw(t, "what") == 0
			if throttled {
				until := now.Add(time.Duration(rapid.IntRange(20, 300).Draw(t, "s")) * time.Second)
				b.RecordThrottle(Throttle{Until: until, Network: rapid.Bool().Draw(t, "network")}, now)
				if now.Before(quotaBack) {
					throttled = false
				} else {
					quotaBack = until
				}
			} else {
				b.CountWrite(now)
			}
			_, after, _ := b.UsageAt(now)
			least := min(minAdaptiveShare, configured/2) * windowWrites
			switch {
			case after < least || after > configured*windowWrites:
				t.Fatalf("the share is %v of %v", after, configured*windowWrites)
			case !throttled && after < before:
				t.Fatalf("the share falls from %v to %v without a 429", before, after)
			case throttled && after > max(least, lowerFactor*before)+0.001, throttled && after < min(before, max(least, lowerFactor*before/2))-0.001:
				t.Fatalf("a 429 lowers the share from %v to %v", before, after)
			}
		}
	})
}

// Until a used-up quota is available again, busy pools wait for it. Then they wait longer than an interval, if the lowered
// share requires it, until the share has risen.
func TestBusyPoolsWaitForTheQuota(t *testing.T) {
	b, now := NewBudget(0.5, 30*time.Second), start
	busy := func() {
		for range 60 {
			now = now.Add(time.Second)
			for n := range 5 {
				b.CountChange(aPool(n), "", now)
			}
		}
	}
	busy()
	if s := b.PaceAt(now).ScheduleFor(aPool(0)); s.Longest != 30*time.Second || !s.NotBefore.IsZero() {
		t.Fatalf("before the first 429: %+v", s)
	}
	until := now.Add(4 * time.Minute)
	for range 10 {
		now = b.fleet.cutUntil.Add(time.Second)
		if now.Before(start) {
			now = start.Add(time.Minute)
		}
		until = now.Add(4 * time.Minute)
		b.RecordThrottle(Throttle{Until: until, Network: true}, now)
	}
	busy()
	s := b.PaceAt(now).ScheduleFor(aPool(0))
	if !s.NotBefore.Equal(until) || s.Longest <= time.Minute || s.Longest > MaxStretch*30*time.Second {
		t.Errorf("while the quota is used up: %+v, want until %s", s, until)
	}
	if f := b.FleetAt(now); f.Others == nil || *f.Others != 1000 || f.Throttles != 10 || f.Reason == "" || f.ClosedUntil == nil {
		t.Errorf("%+v", f)
	}
	for range 24 * 60 {
		now = now.Add(time.Minute)
		b.UsageAt(now)
	}
	if _, share, _ := b.UsageAt(now); share != quietShare*windowWrites {
		t.Errorf("after a quiet day the share is %v", share)
	}
}

// Only what other clients take of a bucket lowers the share.
func TestReportsOfBuckets(t *testing.T) {
	for _, tt := range []struct {
		about       string
		own, left   int
		want, other float64
	}{
		{"nothing is taken", 0, 200, 500, 0},
		{"Weir took most", 150, 50, 500, 0},
		{"others took a part", 20, 100, 500, 80},
		{"others took most", 20, 60, 150, 120},
	} {
		b := NewBudget(0.5, 30*time.Second)
		b.SetRemaining(Remaining{200, -1}, start)
		for range tt.own {
			b.CountWrite(start)
		}
		b.SetRemaining(Remaining{tt.left, -1}, start)
		f := b.FleetAt(start)
		if _, share, _ := b.UsageAt(start); share != tt.want || len(f.Buckets) != 1 || f.Buckets[0].Others != tt.other || f.Buckets[0].Own != float64(tt.own) {
			t.Errorf("%s: share %v, %+v", tt.about, share, f)
		}
	}
}

// Reports come from several buckets: one of a larger bucket does not make the others look used up by other clients.
func TestOneReportOfALargerBucket(t *testing.T) {
	b, now := NewBudget(0.5, 30*time.Second), start
	b.SetRemaining(Remaining{11_999, -1}, now)
	for range 20 {
		now = now.Add(bucketFillTime + time.Second)
		b.CountWrite(now)
		b.SetRemaining(Remaining{199, -1}, now)
	}
	if f := b.FleetAt(now); f.Reason != "" {
		_, share, _ := b.UsageAt(now)
		t.Errorf("the share is %v: %s", share, f.Reason)
	}
}

// The changes of one namespace, of which none is written, do not make the pools of others wait for many intervals.
func TestOneNamespaceDoesNotStretchTheWaitOfOthers(t *testing.T) {
	b, now := NewBudget(0.5, 30*time.Second), start
	for range 5 {
		b.RecordThrottle(Throttle{Until: now.Add(time.Minute), Network: true}, now)
		now = now.Add(2 * time.Minute)
	}
	b.recordNamespace("quiet", now)
	b.recordNamespace("greedy", now)
	for range 60 {
		now = now.Add(time.Second)
		for n := range 100 {
			b.CountChange(aPool(n), "greedy", now)
		}
	}
	b.CountChange(aPool(1000), "quiet", now)
	_, share, _ := b.UsageAt(now)
	if s := b.PaceAt(now).ScheduleFor(aPool(1000)); !b.fleet.isLowered() || s.Longest > 2*30*time.Second {
		t.Errorf("with a share of %.0f writes the pool of a quiet namespace waits up to %s", share, s.Longest)
	}
}

// Beyond a tenth of the quota, a share rises slower the larger it is, and only if it limited Weir in the last twenty minutes.
func TestLowShareRisesFaster(t *testing.T) {
	for _, tt := range []struct {
		share, spent float64
		quiet        time.Duration // since the share limited Weir
		want         float64       // raised in five minutes
	}{
		{20, 0, time.Hour, 10},
		{20, 20, 0, 10},
		{100, 100, 0, 6.4},
		{200, 200, 0, 3.6},
		{200, 200, time.Hour, 3.6},
		{400, 400, 0, 0.4},
		{200, 0, 14 * time.Minute, 3.6},
		{200, 0, 16 * time.Minute, 0},
		{500, 500, 0, 0},
	} {
		s := fleetShare{configured: 0.5, current: tt.share / windowWrites, limitedAt: start.Add(-tt.quiet), raisedAt: start}
		s.raise(tt.spent, start.Add(windowLength))
		if got := s.current*windowWrites - tt.share; math.Abs(got-tt.want) > 0.001 {
			t.Errorf("%+v: the share rises by %.3f", tt, got)
		}
	}
}

// A 429 that may concern only its resource counts for the quota if Azure has accepted no write since it rejected another, or
// while the share is lowered.
func TestQuotaErrors(t *testing.T) {
	now := time.Unix(0, 0)
	b := NewBudget(0.5, 30*time.Second)
	throttle := func(resource string, after time.Duration) {
		b.RecordThrottle(Throttle{Until: now.Add(after), Network: true, Resource: resource}, now)
	}
	check := func(about string, throttles int) {
		t.Helper()
		if got := b.FleetAt(now).Throttles; got != throttles {
			t.Errorf("%s: %d throttles of the quota, want %d", about, got, throttles)
		}
	}
	for range 4 {
		throttle("a", time.Minute)
		now = now.Add(time.Minute)
	}
	check("one resource", 0)
	throttle("a", 30*time.Second)
	now = now.Add(45 * time.Second)
	throttle("b", time.Minute)
	check("a is available again", 0)
	b.RecordAccepted()
	throttle("c", time.Minute)
	check("a write was accepted", 0)
	throttle("d", time.Minute)
	check("two in a row", 1)
	b.RecordAccepted()
	now = now.Add(2 * time.Minute)
	throttle("d", time.Minute)
	check("the share is lowered", 2)
}
