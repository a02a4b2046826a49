// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// A member is shown from a read in sync until an attempt begins that may remove it or set it Down.
func TestShownMembers(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.1")
	c, _, p := newRecordedPool(t)
	c.Workers = &queued{}
	e, err := c.statuses.LoadEntry(t.Context(), p, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var read []schedule.Ref
	c.MembersShown = func(ref schedule.Ref) { read = append(read, ref) }
	report := func(r updater.Report) {
		r.Ref, r.Observed = e.ref, len(r.Written)
		c.Report(t.Context(), r)
	}
	expect := func(about string, wantA, wantB bool) {
		t.Helper()
		if isA, isB := c.IsShown(p, a), c.IsShown(p, b); isA != wantA || isB != wantB {
			t.Errorf("%s: %t, %t", about, isA, isB)
		}
	}
	set := func(states ...string) (s membership.Set) {
		for i, state := range states {
			if state != "absent" {
				s.Addresses = append(s.Addresses, lb.Address{IP: []netip.Addr{a, b}[i], AdminState: state})
			}
		}
		return s
	}
	expect("nothing was read", false, false)
	report(updater.Report{Written: []netip.Addr{a, b}})
	expect("an attempt that failed", false, false)
	report(updater.Report{Written: []netip.Addr{a, b}, InSync: true, HasPendingWrite: true})
	expect("a lost write may land", false, false)
	report(updater.Report{Written: []netip.Addr{a, b}, Down: []netip.Addr{b}, InSync: true})
	expect("one is Down", true, false)
	report(updater.Report{Written: []netip.Addr{a, b}, InSync: true})
	expect("both are up", true, true)
	e.limitShown(set("", lb.Down))
	expect("an attempt sets one Down", true, false)
	report(updater.Report{Written: []netip.Addr{a, b}})
	expect("it failed", true, false)
	e.limitShown(set("", ""))
	expect("the next one does not", true, false)
	e.limitShown(set("absent", ""))
	expect("an attempt removes the other", false, false)
	if len(read) != 5 || read[0] != e.ref {
		t.Errorf("reads of %v", read)
	}
}

// Reading the desired members is the beginning of an attempt.
func TestAnAttemptLimitsWhatIsShown(t *testing.T) {
	remaining := netip.MustParseAddr("10.0.0.9")
	c, e := newLoadedPool(t, bp("a", 0, took), serviceOfType("LoadBalancer"))
	e.shown = []netip.Addr{remaining}
	if _, err := c.DesiredPool(e.ref); err != nil {
		t.Fatal(err)
	}
	if c.IsShown(c.Cluster.Pool(e.ref.Namespace, e.ref.Name), remaining) {
		t.Error("a member that the attempt may remove is still shown")
	}
}
