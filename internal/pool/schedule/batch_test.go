// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// Overlapping writes are in turn order, and none ranks before a pool that has waited for an
// interval and is written separately.
func TestOrderOfOverlappingWrites(t *testing.T) {
	at := seconds(1000)
	change := func(name string, since time.Duration) Group {
		return Group{Pool: lb.PoolKey(name), Namespace: "a", hasNewChange: true, FirstQueued: at.Add(-since)}
	}
	apart := func(g Group) Group { g.history.MustBeAlone = true; return g }
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
func TestPacedPoolWaits(t *testing.T) {
	at := seconds(1000)
	due := Group{Pool: "due", hasNewChange: true, FirstQueued: at.Add(-time.Minute)}
	paced := Group{Pool: "paced", hasNewChange: true, FirstQueued: at.Add(-time.Second), HoldFor: 20 * time.Second, history: History{LastChange: at.Add(-5 * time.Second)}}
	if got := fmt.Sprint(SelectWrites([]Group{paced, due}, at, interval)); got != "[due]" {
		t.Errorf("got %s", got)
	}
}

// What is read together, what is urgent, and what is due.
func TestSelections(t *testing.T) {
	at := seconds(1000)
	check := func(name string, h History) Group { return NewCheckGroup(lb.PoolKey(name), "a", at, h) }
	var excluded, pending, later History
	excluded.MustBeAlone, pending.Writes.PendingEtag, later.WaitUntil = true, "1", at.Add(time.Second)
	three := []Group{check("c", History{}), check("a", History{}), check("b", History{})}
	change := Group{Pool: "change", Namespace: "a", hasNewChange: true, FirstQueued: at.Add(-time.Minute)}
	drain := func(name string, queued time.Duration, failed int, h History) Group {
		return Group{Pool: lb.PoolKey(name), Namespace: "a", history: h, Admin: &Operation{Admin: true, QueuedAt: at.Add(queued), FailedAttempts: failed}}
	}
	drains := []Group{
		drain("due", 0, 0, History{}), drain("failed", 0, 1, History{}), drain("old", -time.Minute, 0, History{}), drain("waits", 0, 0, later),
		drain("repeated", 0, 0, History{LastAdmin: at.Add(-time.Second)}), change,
	}
	for about, tt := range map[string]struct {
		groups    []Group
		selection func([]Group, time.Time, time.Duration) []lb.PoolKey
		want      string
	}{
		"three checks":                   {three, SelectChecks, "[a b c]"},
		"two checks":                     {three[:2], SelectChecks, "[]"},
		"not those to be read alone":     {append([]Group{check("x", excluded), check("y", pending), check("z", History{NeedsRead: true})}, three[:2]...), SelectChecks, "[]"},
		"nor those that wait":            {append([]Group{check("x", later), change}, three...), SelectChecks, "[a b c]"},
		"urgent":                         {drains, SelectUrgent, "[due old]"},
		"admin states since":             {drains, SelectAdminSince(at.Add(-time.Second)), "[due repeated]"},
		"admin states since then do not": {drains, SelectAdminSince(at), "[]"},
		"due, except checks":             {append(slices.Clone(three), drains...), SelectWaiting, "[due failed old repeated change]"},
		"none":                           {nil, SelectWrites, "[]"},
	} {
		if got := fmt.Sprint(tt.selection(tt.groups, at, interval)); got != tt.want {
			t.Errorf("%s: %s, want %s", about, got, tt.want)
		}
	}
	for about, tt := range map[string]struct {
		group Group
		want  bool
	}{
		"a resync":                 {three[0], true},
		"a change":                 {change, false},
		"a retry":                  {NewGroup("p", []Operation{{RetryCount: 1}}, History{}), false},
		"an operation for a check": {NewGroup("p", []Operation{{}}, History{}), true},
		"with admin states":        {NewGroup("p", []Operation{{}, {Admin: true}}, History{}), false},
	} {
		if got := tt.group.IsCheck(); got != tt.want {
			t.Errorf("%s is a check: %t", about, got)
		}
	}
}
