// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// Deleted pools take no part in what is left; those that change still do.
func TestAPoolThatIsGoneHasNoPart(t *testing.T) {
	bs := New(0.5, 30*time.Second)
	id := func(n int) lb.PoolID {
		return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "lb"}, Name: fmt.Sprint(n)}
	}
	now := start
	for range 300 {
		now = now.Add(2 * time.Second)
		for n := range 60 {
			bs.CountChange(id(n), "", now)
		}
	}
	spacing := func() time.Duration {
		return bs.SchedulesFor("S", []lb.PoolKey{id(0).Key()}, now)[id(0).Key()].writeInterval
	}
	if got := spacing(); got < 20*time.Second {
		t.Fatalf("sixty pools that change all the time: a spacing of %s", got)
	}
	for n := 1; n < 60; n++ {
		bs.RemovePool(id(n))
	}
	if got := spacing(); got > 3*time.Second {
		t.Errorf("alone: a spacing of %s", got)
	}
}

// Changing more often than writes are possible gains nothing, and at most one write per interval is
// owed.
func TestAFloodOfChangesIsBounded(t *testing.T) {
	of := func(changes int) changeRate {
		var a changeRate
		for n := range changes {
			a = a.addChange(start.Add(time.Minute*time.Duration(n)/time.Duration(changes)), 30*time.Second)
		}
		return a.decayTo(start.Add(time.Minute), 30*time.Second)
	}
	busy, flood := of(4*60), of(100*4*60)
	if flood.recentCount > busy.recentCount*1.01 || flood.windowCount > busy.windowCount || busy.changeInterval(30*time.Second) > 0 {
		t.Errorf("%+v after a flood, %+v without", flood, busy)
	}
	if once := of(1).addChange(start.Add(time.Minute), 30*time.Second); once.addChange(start.Add(time.Minute+mergeInterval/2), 30*time.Second) != once {
		t.Error("what comes at once counts as more than one change")
	}
}

// Inactive pools are forgotten even if no pace is requested.
func TestIdlePoolsAreForgotten(t *testing.T) {
	b := NewBudget(0.5, 30*time.Second)
	for n := range 1000 {
		b.CountChange(aPool(n), "", start.Add(time.Duration(n)*time.Minute))
	}
	if len(b.pools) > 50 {
		t.Errorf("%d pools are remembered", len(b.pools))
	}
}

// One subscription too many drops the idlest, not the busiest.
func TestTheIdlestSubscriptionIsForgotten(t *testing.T) {
	bs := New(0.5, 30*time.Second)
	bs.CountWrite("own", start.Add(time.Hour))
	for n := range maxSubscriptions + 10 {
		bs.CountWrite(fmt.Sprintf("other-%02d", n), start)
	}
	for _, f := range bs.ListUsage(start.Add(time.Hour)) {
		if f.Subscription == "own" && f.Used == 1 {
			return
		}
	}
	t.Error("what was spent is forgotten")
}

// A clock that was a day ahead for a moment does not keep its counts for a day.
func TestAClockThatWasAhead(t *testing.T) {
	b := NewBudget(0.5, 30*time.Second)
	for range 600 {
		b.CountWrite(start.Add(24 * time.Hour))
	}
	b.CountWrite(start.Add(time.Minute))
	if spent, _, remaining := b.UsageAt(start.Add(2 * time.Minute)); spent != 1 || remaining == 0 {
		t.Errorf("%v spent, %v left", spent, remaining)
	}
}

// The rate of a pool that has just begun to change is based on its age, not on its low count.
func TestChangeIntervals(t *testing.T) {
	for _, every := range []time.Duration{2 * time.Second, 10 * time.Second} {
		var a changeRate
		now := start
		for n := range 40 {
			a = a.addChange(now, 30*time.Second)
			if got := a.decayTo(now.Add(every/2), 30*time.Second).changeInterval(30 * time.Second); n > 1 && (got < every/3 || got > every*5/4) {
				t.Errorf("after %d changes, one each %s, it is %s", n+1, every, got)
			}
			now = now.Add(every)
		}
	}
}

// A pool is due at once when as many changes wait as come between two writes.
func TestTheMoreChangesWaitTheSoonerItGoes(t *testing.T) {
	s := Schedule{writeInterval: 20 * time.Second, changeInterval: 8 * time.Second}
	for changes, want := range map[int]time.Duration{1: 12 * time.Second, 2: 4 * time.Second, 3: 0} {
		if got := s.HoldFor(changes); got != want {
			t.Errorf("%d changes wait for %s, want %s", changes, got, want)
		}
	}
	if got := (Schedule{writeInterval: 20 * time.Second}).HoldFor(1000); got != 20*time.Second {
		t.Errorf("a flood is held for %s", got)
	}
}

// Changes that follow each other closely share a write even if the quota allows one each. Others do not wait.
func TestGathering(t *testing.T) {
	for every, want := range map[time.Duration]time.Duration{500 * time.Millisecond: gatherTime, 1500 * time.Millisecond: gatherTime, 5 * time.Second: 0, 20 * time.Second: 0} {
		b, now := NewBudget(1, 30*time.Second), start
		for range 10 {
			now = now.Add(every)
			b.CountChange("pool", "namespace", now)
		}
		if got := b.PaceAt(now.Add(time.Second)).ScheduleFor("pool").GatherFor(); got != want {
			t.Errorf("changes each %s wait for %s, want %s", every, got, want)
		}
	}
	b := NewBudget(1, 30*time.Second)
	b.CountChange("pool", "namespace", start)
	if got := b.PaceAt(start).ScheduleFor("pool").GatherFor(); got != 0 {
		t.Errorf("a first change waits for %s", got)
	}
}
