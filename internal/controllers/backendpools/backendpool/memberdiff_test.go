// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"encoding/json"
	"net/netip"
	"testing"

	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/updater"
)

// The status lists the differing members until the pool is in sync. An attempt that reads nothing keeps them,
// and an unchanged list is not written again.
func TestAStatusNamesTheMembersThatDiffer(t *testing.T) {
	d := newFixture(t)
	d.world.nodes["n7"] = netip.MustParseAddr("10.0.0.7")
	differs := func(r *updater.Report) {
		r.Observed, r.Foreign = 61, 60
		r.Diff = &diff.Difference{
			Missing:  diff.MemberList{Count: 1, Listed: []netip.Addr{netip.MustParseAddr("10.0.0.7")}},
			Unwanted: diff.MemberList{Count: 1, Listed: []netip.Addr{netip.MustParseAddr("10.0.0.8")}},
			Foreign:  diff.MemberList{Count: 60},
		}
	}
	const named = `{"missing":{"count":1,"named":[{"node":"n7","address":"10.0.0.7"}]},"surplus":{"count":1,"named":[{"address":"10.0.0.8"}]},"foreign":{"count":60}}`
	inSync := func(r *updater.Report) { r.Diff = nil }
	for _, tt := range []struct {
		about   string
		outcome diff.Outcome
		edit    func(*updater.Report)
		want    string
		writes  int
	}{
		{"it is not in sync", diff.Terminal, differs, named, 1},
		{"and is not, again", diff.Terminal, differs, named, 0},
		{"then nothing is read", diff.Terminal, inSync, named, 0},
		{"it is in sync", diff.Written, inSync, "null", 1},
		{"it is not in sync again", diff.Terminal, differs, named, 1},
		{"it is gone", diff.Stale, inSync, "null", 1},
		{"it is not in sync, and back", diff.Terminal, differs, named, 1},
		{"it holds interfaces", diff.Rejected, inSync, "null", 1},
	} {
		before := len(d.api.writes)
		d.reportAttempt(tt.outcome, tt.edit)
		got, err := json.Marshal(d.poolStatus().Members)
		if err != nil {
			t.Fatal(err)
		}
		if written := len(d.api.writes) - before; string(got) != tt.want || written != tt.writes {
			t.Errorf("%s: %s, written %d times; want %s, %d times", tt.about, got, written, tt.want, tt.writes)
		}
		if s := d.poolStatus(); tt.outcome == diff.Stale && (*s.Observed != 0 || s.Foreign != nil) {
			t.Errorf("%s: %d observed, %v of them foreign", tt.about, *s.Observed, s.Foreign)
		}
	}
}

// A pool without a member is reported once its status shows that, if nodes qualify, whether their machines can join or not.
func TestPoolsThatLackMembers(t *testing.T) {
	for _, tt := range []struct {
		about             string
		outcome           diff.Outcome
		desired, observed int
		unusable          []diff.Unusable
		lacks             bool
	}{
		{"no node qualifies", diff.Unchanged, 0, 0, nil, false},
		{"members are missing", diff.Terminal, 2, 0, nil, true},
		{"no machine can join", diff.Unchanged, 0, 0, []diff.Unusable{{Node: "n7", IP: netip.MustParseAddr("10.0.0.7"), Reason: "it has no network interface"}}, true},
		{"one machine cannot join", diff.Unchanged, 1, 1, []diff.Unusable{{Node: "n7", IP: netip.MustParseAddr("10.0.0.7")}}, false},
		{"nothing was read", diff.Terminal, 2, -1, nil, false},
	} {
		d := newFixture(t)
		d.reportAttempt(tt.outcome, func(r *updater.Report) { r.Desired, r.Observed, r.Unusable = tt.desired, tt.observed, tt.unusable })
		if got := d.statuses.LacksMembers(d.p); got != tt.lacks || (len(d.world.empty) > 0) != tt.lacks {
			t.Errorf("%s: lacks members %t, reported %v", tt.about, got, d.world.empty)
		}
	}
}
