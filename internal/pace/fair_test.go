// SPDX-License-Identifier: Apache-2.0

package pace

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// Pools that are gone have no part in what is left; those that change still have theirs.
func TestAPoolThatIsGoneHasNoPart(t *testing.T) {
	bs := New(0.5, 30*time.Second)
	id := func(n int) lb.PoolID {
		return lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: "lb"}, Name: fmt.Sprint(n)}
	}
	now := start
	for range 300 {
		now = now.Add(2 * time.Second)
		for n := range 60 {
			bs.Changed(id(n), now)
		}
	}
	spacing := func() time.Duration {
		return bs.Spacings("S", []lb.PoolKey{id(0).Key()}, now)[id(0).Key()]
	}
	if got := spacing(); got < 20*time.Second {
		t.Fatalf("sixty pools that change all the time: a spacing of %s", got)
	}
	for n := 1; n < 60; n++ {
		bs.Forget(id(n))
	}
	if got := spacing(); got > 3*time.Second {
		t.Errorf("alone: a spacing of %s", got)
	}
}

// Who changes more often than anybody can write gains nothing by changing still more often, and is
// owed no more than one write an interval.
func TestAFloodOfChangesIsBounded(t *testing.T) {
	of := func(changes int) activity {
		var a activity
		for range changes {
			a = a.changed(start, 30*time.Second)
		}
		return a
	}
	if busy, flood := of(mostLately), of(100*mostLately); flood != busy {
		t.Errorf("%+v after a flood, %+v before", flood, busy)
	}
}

// What pools have been is forgotten though nobody asks for a pace.
func TestWhatHasChangedLongAgoIsForgotten(t *testing.T) {
	b := NewBudget(0.5, 30*time.Second)
	for n := range 1000 {
		b.Changed(aPool(n), start.Add(time.Duration(n)*time.Minute))
	}
	if len(b.pools) > 50 {
		t.Errorf("%d pools are remembered", len(b.pools))
	}
}

// One subscription too many has the idlest forgotten, not what the busiest has spent.
func TestTheIdlestSubscriptionIsForgotten(t *testing.T) {
	bs := New(0.5, 30*time.Second)
	bs.Wrote("own", start.Add(time.Hour))
	for n := range mostBudgets + 10 {
		bs.Wrote(fmt.Sprintf("other-%02d", n), start)
	}
	for _, f := range bs.Figures(start.Add(time.Hour)) {
		if f.Subscription == "own" && f.Spent == 1 {
			return
		}
	}
	t.Error("what was spent is forgotten")
}

// A clock that was a day ahead for a moment does not keep what it has counted for a day.
func TestAClockThatWasAhead(t *testing.T) {
	b := NewBudget(0.5, 30*time.Second)
	for range 600 {
		b.Wrote(start.Add(24 * time.Hour))
	}
	b.Wrote(start.Add(time.Minute))
	if spent, _, left := b.Spent(start.Add(2 * time.Minute)); spent != 1 || left == 0 {
		t.Errorf("%v spent, %v left", spent, left)
	}
}
