// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"net/netip"
	"slices"
	"testing"
)

// A single revert may be a manual edit: a repeated one is reported.
func TestSingleRevertIsNoConflict(t *testing.T) {
	undone := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	for times, want := range map[int][]netip.Addr{minReverts - 1: nil, minReverts: undone, minReverts + 1: undone} {
		if got := (conflictState{reverted: undone, revertCount: times}).ConflictingIPs(); !slices.Equal(got, want) {
			t.Errorf("undone %d times: %v is contested, want %v", times, got, want)
		}
	}
}

// A machine takes a minute to rejoin, or was deleted: members missing at each attempt until then
// were removed at most once. It counts again once the pool was in sync.
func TestReturningMemberIsNoConflict(t *testing.T) {
	at := netip.MustParseAddr("10.0.0.1")
	c := conflictState{managed: []netip.Addr{at}}
	on := Result{Outcome: Unchanged, Change: Change{addedIPs: []netip.Addr{at}}, MemberProgress: &MemberProgress{Outcome: Postponed}}
	for range 3 {
		c = c.recordAttempt(on, nil, true)
	}
	if got := c.ConflictingIPs(); got != nil {
		t.Errorf("on the way back: %v is contested", got)
	}
	c = c.recordAttempt(Result{Outcome: Unchanged, written: []netip.Addr{at}}, nil, false)
	c = c.recordAttempt(on, nil, true)
	if got := c.ConflictingIPs(); !slices.Equal(got, []netip.Addr{at}) {
		t.Errorf("taken out twice: %v is contested", got)
	}
}

// A machine that cannot join was in no pool, so no client removed it.
func TestMachineThatCannotJoinIsNoConflict(t *testing.T) {
	at := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	c := conflictState{}
	for range 4 {
		c = c.recordAttempt(Result{Outcome: Unchanged, Change: Change{addedIPs: at}, written: at, Unusable: []Unusable{{Node: "n1", IP: at[0]}}}, nil, true)
	}
	if got := c.ConflictingIPs(); got != nil {
		t.Errorf("%v is contested", got)
	}
}

// A node is excluded and wanted again before its machine was seen to leave: Weir removed it.
func TestMemberRemovedByWeirIsNoConflict(t *testing.T) {
	at := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	c := conflictState{managed: at, reverted: at, revertCount: 1}
	c = c.recordAttempt(Result{Outcome: Unchanged, Change: Change{removedIPs: at}, MemberProgress: &MemberProgress{Outcome: Postponed}}, nil, false)
	c = c.recordAttempt(Result{Outcome: Unchanged, Change: Change{addedIPs: at}, MemberProgress: &MemberProgress{Outcome: Postponed}}, nil, false)
	if got := c.ConflictingIPs(); got != nil {
		t.Errorf("%v is contested", got)
	}
}

// Machines are deleted one by one, each shortly before its node: none is removed twice.
func TestSingleRemovalsAreNoConflict(t *testing.T) {
	single, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	without := func(ip netip.Addr) Result {
		return Result{Outcome: Written, Change: Change{addedIPs: []netip.Addr{ip}}, written: []netip.Addr{single, two}}
	}
	c := conflictState{managed: []netip.Addr{single, two}}
	if c = c.recordAttempt(without(single), nil, false).recordAttempt(without(two), nil, false); c.ConflictingIPs() != nil {
		t.Errorf("%v is contested", c.ConflictingIPs())
	}
	if c = c.recordAttempt(without(two), nil, false); !slices.Equal(c.ConflictingIPs(), []netip.Addr{two}) {
		t.Errorf("taken out twice: %v is contested", c.ConflictingIPs())
	}
}
