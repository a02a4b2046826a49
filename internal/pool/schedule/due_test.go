// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

const interval = 30 * time.Second

var start = time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)

func seconds(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }

func TestReadyAt(t *testing.T) {
	tests := []struct {
		name string
		ops  []Operation
		h    History
		want time.Time
	}{
		{"a fresh change waits for company, once",
			[]Operation{{QueuedAt: seconds(0)}, {QueuedAt: seconds(0.2)}}, History{}, seconds(0.25)},
		{"one of a busy pool waits for its pace",
			[]Operation{{QueuedAt: seconds(1)}}, History{LastChange: seconds(0)}, seconds(13)},
		{"from the first of those that wait",
			[]Operation{{QueuedAt: seconds(20)}, {QueuedAt: seconds(10)}}, History{LastChange: seconds(0)}, seconds(22)},
		{"until an interval is over",
			[]Operation{{QueuedAt: seconds(25)}}, History{LastChange: seconds(0)}, seconds(30)},
		{"and no longer",
			[]Operation{{QueuedAt: seconds(40)}}, History{LastChange: seconds(0)}, seconds(40.25)},
		{"a retry waits one interval from the attempt before it",
			[]Operation{{QueuedAt: seconds(0), RetryCount: 1}}, History{LastAttempt: seconds(4)}, seconds(34)},
		{"Retry-After delays it further",
			[]Operation{{QueuedAt: seconds(0), RetryCount: 1, NextEligibleAt: seconds(90)}}, History{LastAttempt: seconds(4)}, seconds(90)},
		{"but never brings it forward",
			[]Operation{{QueuedAt: seconds(0), RetryCount: 1, NextEligibleAt: seconds(5)}}, History{LastAttempt: seconds(4)}, seconds(34)},
		{"a fresh operation never takes a parked one along early",
			[]Operation{{QueuedAt: seconds(1), RetryCount: 1, NextEligibleAt: seconds(90)}, {QueuedAt: seconds(2)}}, History{LastAttempt: seconds(4)}, seconds(90)},
		{"nor one that waits for its interval",
			[]Operation{{QueuedAt: seconds(1), RetryCount: 1}, {QueuedAt: seconds(2)}}, History{LastAttempt: seconds(4)}, seconds(34)},
		{"what is held waits, fresh or not",
			[]Operation{{QueuedAt: seconds(0)}}, History{WaitUntil: seconds(8)}, seconds(8)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewGroup("p", tt.ops, tt.h)
			g.HoldFor = 12 * time.Second
			if got := g.ReadyAt(interval); !got.Equal(tt.want) {
				t.Errorf("got +%s, want +%s", got.Sub(start), tt.want.Sub(start))
			}
		})
	}
}

// Whatever its hold, a pool waits no longer than an interval, unless the share of writes is lowered or the quota used up.
func TestAPaceIsBoundedByTheInterval(t *testing.T) {
	g := Group{hasNewChange: true, FirstQueued: seconds(1), HoldFor: time.Hour, history: History{LastChange: seconds(0)}}
	if got := g.ReadyAt(interval); !got.Equal(seconds(30)) {
		t.Errorf("it may be written at +%s", got.Sub(start))
	}
	if !g.IsPaced(seconds(1), interval) || g.IsPaced(seconds(30), interval) {
		t.Error("until then it is paced, and not from then on")
	}
	g.LongestHold = 2 * time.Minute
	if got := g.ReadyAt(interval); !got.Equal(seconds(120)) || !g.IsPaced(seconds(119), interval) {
		t.Errorf("with a lowered share it may be written at +%s", got.Sub(start))
	}
	g.QuotaNotBefore = seconds(200)
	if got := g.ReadyAt(interval); !got.Equal(seconds(200)) {
		t.Errorf("with a used-up quota it may be written at +%s", got.Sub(start))
	}
	g.exempt = true
	if got := g.ReadyAt(interval); !got.Equal(seconds(30)) {
		t.Errorf("removals and draining nodes wait until +%s", got.Sub(start))
	}
}

// A change beyond its namespace's share waits for room, up to the bound. Draining nodes, removals
// and checks do not.
func TestDeferredByItsShare(t *testing.T) {
	deferred := func(until float64, ops ...Operation) Group {
		g := NewGroup("p", ops, History{})
		if g.NeedsShare(seconds(1), interval) {
			g.Deferred = seconds(until)
		}
		return g
	}
	change := Operation{QueuedAt: start, ChangedAt: start}
	fills, fails, exempt, admin, look := change, change, change, change, change
	fills.FillsPool, fails.RetryCount, exempt.Exempt, admin.Admin, look.ChangedAt = true, 1, true, true, time.Time{}
	for _, tt := range []struct {
		about string
		g     Group
		want  float64
	}{
		{"an isolated change", deferred(90, change), 90},
		{"for long", deferred(1e6, change), MaxDeferral.Seconds()},
		{"a new pool", deferred(90, fills), 90},
		{"one that failed", deferred(90, fails), 90},
		{"one without a node", deferred(90, exempt), 0.25},
		{"and with another change", deferred(90, MergeOperations([]Operation{change}, exempt)...), 0.25},
		{"admin states", deferred(90, admin), 0},
		{"admin states beside a change", deferred(90, admin, change), 0},
		{"a look", deferred(90, look), 0.25},
	} {
		if got := tt.g.ReadyAt(interval); !got.Equal(seconds(tt.want)) {
			t.Errorf("%s: at +%s, want +%vs", tt.about, got.Sub(start), tt.want)
		}
	}
	if member, admin := deferred(90, admin, change).DueKinds(seconds(1), interval); member || !admin {
		t.Errorf("members are due %t, admin states %t", member, admin)
	}
}

func TestAdmit(t *testing.T) {
	retry := Group{Pool: "retry", Retry: true, FirstQueued: seconds(0), history: History{LastAttempt: seconds(1)}}
	fresh := Group{Pool: "fresh", hasNewChange: true, FirstQueued: seconds(30)}
	older := Group{Pool: "older", hasNewChange: true, FirstQueued: seconds(29)}
	waits := Group{Pool: "waits", hasNewChange: true, FirstQueued: seconds(39.9)}
	tests := []struct {
		name   string
		groups []Group
		pick   lb.PoolKey
		askAt  time.Time
	}{
		{"nothing to do, nothing to wait for", nil, "", time.Time{}},
		{"fresh work goes before retries", []Group{retry, fresh}, "fresh", time.Time{}},
		{"the oldest fresh work goes first", []Group{fresh, retry, older}, "older", time.Time{}},
		{"one that waits holds up nobody", []Group{waits, retry}, "retry", seconds(40.15)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pick, ok, askAt := SelectPool(tt.groups, seconds(40), interval)
			if pick != tt.pick || ok != (tt.pick != "") || !askAt.Equal(tt.askAt) {
				t.Errorf("admit = %q, %v, +%s", pick, ok, askAt.Sub(start))
			}
		})
	}
}

// Debouncing does not cut Retry-After short.
func TestParkedPoolIsNotDebounced(t *testing.T) {
	at := seconds(1000)
	g := Group{hasNewChange: true, FirstQueued: at.Add(-100 * time.Millisecond)}
	if !g.isDebouncing(at, interval) {
		t.Error("it waits for company alone")
	}
	g.ParkedUntil = at.Add(50 * time.Millisecond)
	if g.isDebouncing(at, interval) {
		t.Error("it is parked")
	}
}

// A newly created pool ignores debouncing and pace, but not Retry-After.
func TestANewPoolIsNotKeptWaiting(t *testing.T) {
	fills := Operation{FillsPool: true, QueuedAt: seconds(1)}
	for _, row := range []struct {
		name string
		ops  []Operation
		h    History
		want time.Time
	}{
		{"for company", []Operation{fills}, History{}, seconds(1)},
		{"for pace", []Operation{fills}, History{LastChange: seconds(0)}, seconds(1)},
		{"with a change that waits for company", []Operation{{QueuedAt: seconds(0.9)}, fills}, History{}, seconds(0.9)},
		{"but for a Retry-After", []Operation{fills}, History{NotBefore: seconds(60)}, seconds(60)},
		{"but for what is ours and not ready", []Operation{fills}, History{WaitUntil: seconds(8)}, seconds(8)},
		{"but for a retry, which has met something", []Operation{{RetryCount: 1}, fills}, History{LastAttempt: seconds(0)}, seconds(30)},
		{"once it has failed it is one like any other", []Operation{{FillsPool: true, RetryCount: 1}}, History{LastAttempt: seconds(0)}, seconds(30)},
	} {
		if got := NewGroup("p", row.ops, row.h).ReadyAt(interval); !got.Equal(row.want) {
			t.Errorf("%s: ready at %s, want %s", row.name, got.Sub(start), row.want.Sub(start))
		}
	}
	empty, busy := NewGroup("z", []Operation{fills}, History{}), NewGroup("a", []Operation{{QueuedAt: seconds(0)}}, History{})
	if !empty.newClaim(seconds(2), interval).isBefore(busy.newClaim(seconds(2), interval), seconds(2), interval) {
		t.Error("of one namespace, the pool that serves nobody goes first")
	}
}

// A new pool that cannot be filled keeps the normal pace.
func TestANewPoolThatFailsKeepsItsPace(t *testing.T) {
	for about, h := range map[string]History{"given up": {FinalError: "Terminal Poison"}, "refused": {MustBeAlone: true}} {
		if g := NewGroup("p", []Operation{{FillsPool: true, ChangedAt: seconds(1)}}, h); g.needsFill || !g.hasNewChange {
			t.Errorf("%s: it waits for no pace", about)
		}
	}
	if g := NewGroup("p", []Operation{{FillsPool: true, ChangedAt: seconds(1)}}, History{}); !g.needsFill {
		t.Error("a new pool is kept waiting")
	}
}

// What a group knows of its operations.
func TestGroupsSummarize(t *testing.T) {
	service := ServiceName{Namespace: "a", Name: "web"}
	ops := []Operation{
		{Ref: Ref{Namespace: "a"}, Resync: true},
		{Ref: Ref{Namespace: "a"}, Service: service, ChangedAt: seconds(3), QueuedAt: seconds(5), Impact: Impact{Serving: 5, Stopping: 1}, mergeCount: 2},
		{Ref: Ref{Namespace: "a"}, ChangedAt: seconds(2), QueuedAt: seconds(4), Impact: Impact{Serving: 5, Stopping: 3}, NextEligibleAt: seconds(30), RetryCount: 1, Exempt: true},
		{Ref: Ref{Namespace: "a"}, Admin: true, QueuedAt: seconds(1)},
	}
	g := NewGroup("p", ops, History{})
	if g.Namespace != "a" || g.ChangeCount != 3 || !g.hasNewChange || !g.Retry || !g.exempt || g.onlyChecks || g.impact.Stopping != 3 || !g.FirstQueued.Equal(seconds(4)) || !g.ParkedUntil.Equal(seconds(30)) {
		t.Errorf("%+v", g)
	}
	if !g.OldestQueued().Equal(seconds(1)) || !g.NotBefore().Equal(seconds(30)) || !g.EligibleAt(seconds(29)).Equal(seconds(30)) || !g.EligibleAt(seconds(30)).IsZero() {
		t.Errorf("queued at %s, not before %s", g.OldestQueued(), g.NotBefore())
	}
	ops[3].QueuedAt = seconds(99)
	if !g.Admin.QueuedAt.Equal(seconds(1)) {
		t.Error("the group changes with the queue")
	}
	without := NewGroup("p", ops[1:2], History{})
	if !without.AdminRetryAt().IsZero() || without.RetryAt(interval).IsZero() || !NewGroup("p", ops[3:], History{}).RetryAt(interval).IsZero() {
		t.Error("retries of what is not queued")
	}
	check := NewCheckGroup("p", "b", seconds(7), History{})
	if check.Pool != "p" || check.Namespace != "b" || !check.onlyChecks || !check.FirstQueued.Equal(seconds(7)) || !check.ReadyAt(interval).Equal(seconds(7)) {
		t.Errorf("%+v", check)
	}
	resync := Subject{Ref: Ref{Name: "web"}, Pool: web, Service: service}.NewResync(seconds(8))
	if !resync.Resync || !resync.IsCheck() || resync.Service != service || resync.Pool != web || !resync.QueuedAt.Equal(seconds(8)) {
		t.Errorf("%+v", resync)
	}
	for about, tt := range map[string]struct {
		group         Group
		at            float64
		member, admin bool
	}{
		"a change":                     {NewGroup("p", []Operation{{ChangedAt: seconds(1), QueuedAt: seconds(1)}}, History{}), 2, true, false},
		"not yet":                      {NewGroup("p", []Operation{{ChangedAt: seconds(1), QueuedAt: seconds(1)}}, History{}), 1, false, false},
		"admin states":                 {NewGroup("p", []Operation{{Admin: true, QueuedAt: seconds(1)}}, History{}), 1, false, true},
		"admin states before a change": {NewGroup("p", []Operation{{ChangedAt: seconds(1), QueuedAt: seconds(1)}, {Admin: true, QueuedAt: seconds(1)}}, History{}), 1, false, true},
		"both":                         {NewGroup("p", []Operation{{ChangedAt: seconds(1), QueuedAt: seconds(1)}, {Admin: true, QueuedAt: seconds(1)}}, History{}), 2, true, true},
		"a resync":                     {check, 7, true, false},
	} {
		if member, admin := tt.group.DueKinds(seconds(tt.at), interval); member != tt.member || admin != tt.admin {
			t.Errorf("%s: member %t, admin states %t", about, member, admin)
		}
	}
	if got := fmt.Sprint(ReadyNamespaces([]Group{check, ofNamespace("c", "c1"), ofNamespace("a", "a1"), NewGroup("x", []Operation{{Ref: Ref{Namespace: "z"}, QueuedAt: seconds(9)}}, History{})}, seconds(8), interval)); got != "[a b c]" {
		t.Errorf("ready: %s", got)
	}
}

// When a pace may delay a change, and which kind a paced change is.
func TestPacedOperations(t *testing.T) {
	now := seconds(1000)
	recent, old := History{LastChange: now.Add(-interval / 2)}, History{LastChange: now.Add(-interval)}
	change := []Operation{{ChangedAt: now, QueuedAt: now}}
	for about, tt := range map[string]struct {
		ops  []Operation
		h    History
		want bool
	}{
		"written within the interval": {change, recent, true},
		"written before":              {change, old, false},
		"never":                       {change, History{}, false},
		"a retry":                     {[]Operation{{ChangedAt: now, RetryCount: 1}}, recent, false},
		"admin states alone":          {[]Operation{{Admin: true}}, recent, false},
		"a new pool":                  {[]Operation{{ChangedAt: now, FillsPool: true}}, recent, false},
	} {
		g := NewGroup("p", tt.ops, tt.h)
		if got := g.NeedsPace(now, interval); got != tt.want {
			t.Errorf("%s: %t", about, got)
		}
		if kind := g.newClaim(now, interval).kind; (kind == kindRepeatedChanges) != tt.want {
			t.Errorf("%s: kind %d", about, kind)
		}
	}
	stretched := NewGroup("p", change, old)
	stretched.LongestHold = 2 * interval
	if !stretched.NeedsPace(now, interval) {
		t.Error("a longer hold does not delay")
	}
	closed := NewGroup("p", change, old)
	closed.QuotaNotBefore = now.Add(time.Second)
	if !closed.NeedsPace(now, interval) {
		t.Error("a used-up quota does not delay")
	}
}
