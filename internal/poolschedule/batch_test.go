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
		return Group{pool: lb.PoolKey(name), Namespace: "a", hasNew: true, firstQueued: at.Add(-since)}
	}
	apart := func(g Group) Group { g.history.ExcludedFromBatch = true; return g }
	parked := func(g Group) Group { g.ParkedUntil = at.Add(time.Minute); return g }
	given := func(g Group) Group { g.history.FinalError = "Terminal Other"; return g }
	drains := Group{pool: "drains", Namespace: "a", Admin: &Operation{Admin: true, Impact: Impact{Stopping: 1}, QueuedAt: at}}
	for _, tt := range []struct {
		about  string
		groups []Group
		leave  wholewrite.Permission
		want   string
	}{
		{"in turn", []Group{change("new", 0), change("old", time.Hour), change("older", 2*time.Hour), drains}, wholewrite.Allowed, "[drains older old new]"},
		{"a look is none", []Group{change("old", time.Hour), {pool: "look", firstQueued: at.Add(-time.Hour)}}, wholewrite.Allowed, "[old]"},
		{"what Azure wants no call for is none", []Group{change("old", time.Hour), parked(change("parked", 2*time.Hour))}, wholewrite.Allowed, "[old]"},
		{"not before one that goes by itself", []Group{change("old", time.Hour), apart(change("older", 2*time.Hour)), change("oldest", 3*time.Hour)}, wholewrite.Allowed, "[oldest]"},
		{"it has not waited for long", []Group{change("old", time.Hour), apart(change("new", time.Second))}, wholewrite.Allowed, "[old]"},
		{"what fails for reasons of its own has no part in a trial", []Group{change("new", time.Second), given(change("fails", 2*time.Second))}, wholewrite.Once, "[new]"},
		{"no leave", []Group{change("old", time.Hour)}, wholewrite.Denied, "[]"},
	} {
		if got := fmt.Sprint(SelectPipeline(tt.groups, at, interval, tt.leave)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}

// A pool that waits for its pace joins a batch at no cost, but is not written separately.
func TestWhatWaitsForItsPaceGoesAlong(t *testing.T) {
	at := seconds(1000)
	due := Group{pool: "due", hasNew: true, firstQueued: at.Add(-time.Minute)}
	paced := Group{pool: "paced", hasNew: true, firstQueued: at.Add(-time.Second), HoldFor: 20 * time.Second, history: History{LastChange: at.Add(-5 * time.Second)}}
	parked := paced
	parked.pool, parked.ParkedUntil = "parked", at.Add(time.Minute)
	apart := paced
	apart.pool, apart.history.ExcludedFromBatch = "apart", true
	yes := wholewrite.Permissions{Addresses: wholewrite.Allowed, States: wholewrite.Allowed}
	for want, groups := range map[string][]Group{
		"[due paced]": {paced, parked, apart, due},
		"[]":          {paced, parked},
	} {
		if got := fmt.Sprint(SelectBatch(groups, at, interval, yes)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := fmt.Sprint(SelectPipeline([]Group{paced, due}, at, interval, wholewrite.Allowed)); got != "[due]" {
		t.Errorf("each by its own write: %s", got)
	}
}
