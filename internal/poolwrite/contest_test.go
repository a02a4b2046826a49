// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
	"testing"
)

// Somebody may have edited a pool by hand once: people hear of it when it comes again.
func TestWhatIsUndoneOnceIsNoContest(t *testing.T) {
	undone := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	for times, want := range map[int][]netip.Addr{timesUndone - 1: nil, timesUndone: undone, timesUndone + 1: undone} {
		if got := (contest{undone: undone, times: times}).Contested(); !slices.Equal(got, want) {
			t.Errorf("undone %d times: %v is contested, want %v", times, got, want)
		}
	}
}

// A machine takes a minute to be back in its pool, or is gone: who is missing at each attempt meanwhile was
// taken out once, if at all. It counts again once the pool was level.
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

// A node is excluded, and wanted again before its machine was seen to have left: Weir took it out.
func TestWhoLeavesByUsIsNoContest(t *testing.T) {
	at := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	c := contest{holds: at, undone: at, times: 1}
	c = c.learn(Result{Outcome: Unchanged, Todo: Change{removed: at}, Handed: &Handed{Outcome: Postponed}}, nil, false)
	c = c.learn(Result{Outcome: Unchanged, Todo: Change{added: at}, Handed: &Handed{Outcome: Postponed}}, nil, false)
	if got := c.Contested(); got != nil {
		t.Errorf("%v is contested", got)
	}
}
