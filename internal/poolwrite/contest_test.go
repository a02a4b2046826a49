// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
	"testing"
)

// A single revert may be a manual edit: a repeated one is reported.
func TestWhatIsUndoneOnceIsNoContest(t *testing.T) {
	undone := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	for times, want := range map[int][]netip.Addr{timesUndone - 1: nil, timesUndone: undone, timesUndone + 1: undone} {
		if got := (contest{undone: undone, times: times}).Contested(); !slices.Equal(got, want) {
			t.Errorf("undone %d times: %v is contested, want %v", times, got, want)
		}
	}
}

// A machine takes a minute to rejoin, or was deleted: members missing at each attempt until then
// were removed at most once. It counts again once the pool was in sync.
func TestWhoIsOnTheWayBackIsNoContest(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.1")
	c := contest{holds: []netip.Addr{at}}
	on := Result{Outcome: Unchanged, Todo: Change{added: []netip.Addr{at}}, Handed: &Handed{Outcome: Postponed}}
	for range 3 {
		c = c.learn(on, nil, true)
	}
	if got := c.Contested(); got != nil {
		t.Errorf("on the way back: %v is contested", got)
	}
	c = c.learn(Result{Outcome: Unchanged, written: []netip.Addr{at}}, nil, false)
	c = c.learn(on, nil, true)
	if got := c.Contested(); !slices.Equal(got, []netip.Addr{at}) {
		t.Errorf("taken out twice: %v is contested", got)
	}
}

// A node is excluded and wanted again before its machine was seen to leave: Weir removed it.
func TestWhoLeavesByUsIsNoContest(t *testing.T) {
	at := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	c := contest{holds: at, undone: at, times: 1}
	c = c.learn(Result{Outcome: Unchanged, Todo: Change{removed: at}, Handed: &Handed{Outcome: Postponed}}, nil, false)
	c = c.learn(Result{Outcome: Unchanged, Todo: Change{added: at}, Handed: &Handed{Outcome: Postponed}}, nil, false)
	if got := c.Contested(); got != nil {
		t.Errorf("%v is contested", got)
	}
}

// Machines are deleted one by one, each shortly before its node: none is removed twice.
func TestWhatGoesOnceEachIsNoContest(t *testing.T) {
	one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	without := func(ip netip.Addr) Result {
		return Result{Outcome: Written, Todo: Change{added: []netip.Addr{ip}}, written: []netip.Addr{one, two}}
	}
	c := contest{holds: []netip.Addr{one, two}}
	if c = c.learn(without(one), nil, false).learn(without(two), nil, false); c.Contested() != nil {
		t.Errorf("%v is contested", c.Contested())
	}
	if c = c.learn(without(two), nil, false); !slices.Equal(c.Contested(), []netip.Addr{two}) {
		t.Errorf("taken out twice: %v is contested", c.Contested())
	}
}
