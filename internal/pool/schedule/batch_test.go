// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// Overlapping writes are in turn order, and none ranks before a pool that has waited for an
// interval and is written separately.
func TestWhichPoolsGoOneAfterTheOther(t *testing.T) {
	at := seconds(1000)
	change := func(name string, since time.Duration) Group {
		return Group{Pool: lb.PoolKey(name), Namespace: "a", hasNew: true, FirstQueued: at.Add(-since)}
	}
	apart := func(g Group) Group { g.history.ExcludedFromBatch = true; return g }
	parked := func(g Group) Group { g.ParkedUntil = at.Add(time.Minute); return g }
	drains := Group{Pool: "drains", Namespace: "a", Admin: &Operation{Admin: true, Impact: Impact{Stopping: 1}, QueuedAt: at}}
	for _, tt := range []struct {
		about  string
		groups []Group
		want   string
	}{
		{"in turn", []Group{change("new", 0), change("old", time.Hour), change("older", 2*time.Hour), drains}, "[drains older old new]"},
		{"a look is none", []Group{change("old", time.Hour), {Pool: "look", FirstQueued: at.Add(-time.Hour)}}, "[old]"},
		{"what Azure wants no call for is none", []Group{change("old", time.Hour), parked(change("parked", 2*time.Hour))}, "[old]"},
		{"not before one that goes by itself", []Group{change("old", time.Hour), apart(change("older", 2*time.Hour)), change("oldest", 3*time.Hour)}, "[oldest]"},
		{"it has not waited for long", []Group{change("old", time.Hour), apart(change("new", time.Second))}, "[old]"},
	} {
		if got := fmt.Sprint(SelectWrites(tt.groups, at, interval)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.about, got, tt.want)
		}
	}
}

// A pool that waits for its pace is not written with others: it would cost a write.
func TestWhatWaitsForItsPaceWaits(t *testing.T) {
	at := seconds(1000)
	due := Group{Pool: "due", hasNew: true, FirstQueued: at.Add(-time.Minute)}
	paced := Group{Pool: "paced", hasNew: true, FirstQueued: at.Add(-time.Second), HoldFor: 20 * time.Second, history: History{LastChange: at.Add(-5 * time.Second)}}
	if got := fmt.Sprint(SelectWrites([]Group{paced, due}, at, interval)); got != "[due]" {
		t.Errorf("got %s", got)
	}
}
