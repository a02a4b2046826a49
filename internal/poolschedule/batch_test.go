// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// Overlapping writes are in turn order, and none ranks before a pool that has waited for an
// interval and is written separately.
func TestWhichPoolsGoOneAfterTheOther(t *testing.T) {
	at := seconds(1000)
	change := func(name string, since time.Duration) Group {
		return Group{pool: lb.PoolKey(name), Namespace: "a", fresh: true, firstQueued: at.Add(-since)}
	}
	apart := func(g Group) Group { g.history.Apart = true; return g }
	parked := func(g Group) Group { g.ParkedUntil = at.Add(time.Minute); return g }
	given := func(g Group) Group { g.history.GaveUp = "Terminal Other"; return g }
	drains := Group{pool: "drains", Namespace: "a", Admin: &Operation{Admin: true, Stake: Stake{Leaves: 1}, QueuedAt: at}}
	for _, tt := range []struct {
		about  string
		groups []Group
		leave  wholewrite.Leave
		want   string
	}{
		{"in turn", []Group{change("new", 0), change("old", time.Hour), change("older", 2*time.Hour), drains}, wholewrite.Yes, "[drains older old new]"},
		{"a look is none", []Group{change("old", time.Hour), {pool: "look", firstQueued: at.Add(-time.Hour)}}, wholewrite.Yes, "[old]"},
		{"what Azure wants no call for is none", []Group{change("old", time.Hour), parked(change("parked", 2*time.Hour))}, wholewrite.Yes, "[old]"},
		{"not before one that goes by itself", []Group{change("old", time.Hour), apart(change("older", 2*time.Hour)), change("oldest", 3*time.Hour)}, wholewrite.Yes, "[oldest]"},
		{"it has not waited for long", []Group{change("old", time.Hour), apart(change("new", time.Second))}, wholewrite.Yes, "[old]"},
		{"what fails for reasons of its own has no part in a trial", []Group{change("new", time.Second), given(change("fails", 2*time.Second))}, wholewrite.Try, "[new]"},
		{"no leave", []Group{change("old", time.Hour)}, wholewrite.No, "[]"},
	} {
		if got := fmt.Sprint(InTurn(tt.groups, at, interval, tt.leave)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}

// A pool that waits for its pace joins a batch at no cost, but is not written separately.
func TestWhatWaitsForItsPaceGoesAlong(t *testing.T) {
	at := seconds(1000)
	due := Group{pool: "due", fresh: true, firstQueued: at.Add(-time.Minute)}
	paced := Group{pool: "paced", fresh: true, firstQueued: at.Add(-time.Second), Hold: 20 * time.Second, history: History{LastChange: at.Add(-5 * time.Second)}}
	parked := paced
	parked.pool, parked.ParkedUntil = "parked", at.Add(time.Minute)
	apart := paced
	apart.pool, apart.history.Apart = "apart", true
	yes := wholewrite.Leaves{Addresses: wholewrite.Yes, States: wholewrite.Yes}
	for want, groups := range map[string][]Group{
		"[due paced]": {paced, parked, apart, due},
		"[]":          {paced, parked},
	} {
		if got := fmt.Sprint(Together(groups, at, interval, yes)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := fmt.Sprint(InTurn([]Group{paced, due}, at, interval, wholewrite.Yes)); got != "[due]" {
		t.Errorf("each by its own write: %s", got)
	}
}
