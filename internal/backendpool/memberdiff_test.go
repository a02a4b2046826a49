// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"encoding/json"
	"net/netip"
	"testing"

	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

// The status lists the differing members until the pool is in sync. An attempt that reads nothing keeps them,
// and an unchanged list is not written again.
func TestAStatusNamesTheMembersThatDiffer(t *testing.T) {
	d := newFixture(t)
	d.world.nodes["n7"] = netip.MustParseAddr("10.0.0.7")
	differs := func(r *poolupdate.Report) {
		r.Observed, r.Foreign = 61, 60
		r.Diff = &poolwrite.Difference{
			Missing:  poolwrite.MemberList{Count: 1, Listed: []netip.Addr{netip.MustParseAddr("10.0.0.7")}},
			Unwanted: poolwrite.MemberList{Count: 1, Listed: []netip.Addr{netip.MustParseAddr("10.0.0.8")}},
			Foreign:  poolwrite.MemberList{Count: 60},
		}
	}
	const named = `{"missing":{"count":1,"named":[{"node":"n7","address":"10.0.0.7"}]},"surplus":{"count":1,"named":[{"address":"10.0.0.8"}]},"foreign":{"count":60}}`
	level := func(r *poolupdate.Report) { r.Diff = nil }
	for _, tt := range []struct {
		about   string
		outcome poolwrite.Outcome
		edit    func(*poolupdate.Report)
		want    string
		writes  int
	}{
		{"it is not level", poolwrite.Terminal, differs, named, 1},
		{"and is not, again", poolwrite.Terminal, differs, named, 0},
		{"then nothing is read", poolwrite.Terminal, level, named, 0},
		{"it is level", poolwrite.Written, level, "null", 1},
		{"it is not level again", poolwrite.Terminal, differs, named, 1},
		{"it is gone", poolwrite.Stale, level, "null", 1},
		{"it is not level, and back", poolwrite.Terminal, differs, named, 1},
		{"it holds interfaces", poolwrite.Rejected, level, "null", 1},
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
	}
}
