// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"

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
		{"with a pass in hand a busy pool does not wait either",
			[]Operation{{QueuedAt: seconds(1)}}, History{Passes: passes{Taken: 2, refill: seconds(0)}, LastAttempt: seconds(0)}, seconds(1.25)},
		{"without one it waits for the next to come back",
			[]Operation{{QueuedAt: seconds(1)}}, History{Passes: passes{Taken: 3, refill: seconds(0)}}, seconds(30)},
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
			[]Operation{{QueuedAt: seconds(0)}}, History{HoldUntil: seconds(8)}, seconds(8)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Summarize("p", tt.ops, tt.h).ReadyAt(seconds(1), interval); !got.Equal(tt.want) {
				t.Errorf("got +%s, want +%s", got.Sub(start), tt.want.Sub(start))
			}
		})
	}
}

// Passes come back on the beat of the first, and never more than were taken.
func TestPassesComeBack(t *testing.T) {
	p := passes{}
	for range burst {
		p = p.take(seconds(0), interval)
	}
	p = p.take(seconds(45), interval) // the one of 30 s
	if got := p.nextAt(interval); !got.Equal(seconds(60)) {
		t.Errorf("the next comes back at +%s, want +60s", got.Sub(start))
	}
	for range burst { // they go along with admin states
		p = p.take(seconds(46), interval)
	}
	if got := p.nextAt(interval); !got.Equal(seconds(60)) {
		t.Errorf("one that took more than it had waits until +%s, want +60s: no wait is longer than an interval", got.Sub(start))
	}
	p = p.take(seconds(90_000), interval)
	if p.Taken != 1 || !p.refill.Equal(seconds(90_000)) {
		t.Errorf("a pool that was quiet for a day has %d of %d passes in hand", burst-p.Taken, burst)
	}
	if got := p.at(seconds(200_000), interval); got != (passes{}) && got.Taken != 0 {
		t.Errorf("and %d after the next", burst-got.Taken)
	}
	if got := p.at(seconds(90_029), interval); got.Taken != 1 {
		t.Errorf("a pass came back early: %+v", got)
	}
}

func TestAdmit(t *testing.T) {
	retry := Group{pool: "retry", Retry: true, firstQueued: seconds(0), history: History{LastAttempt: seconds(1)}}
	fresh := Group{pool: "fresh", fresh: true, firstQueued: seconds(30)}
	older := Group{pool: "older", fresh: true, firstQueued: seconds(29)}
	waits := Group{pool: "waits", fresh: true, firstQueued: seconds(39.9)}
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
			pick, ok, askAt := Admit(tt.groups, seconds(40), interval)
			if pick != tt.pick || ok != (tt.pick != "") || !askAt.Equal(tt.askAt) {
				t.Errorf("admit = %q, %v, +%s", pick, ok, askAt.Sub(start))
			}
		})
	}
}

// Over any stretch of n intervals a pool gets at most three passes and one more
// an interval, and if it always asks it gets exactly these.
func TestPassesLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now, p := start, passes{}
		var taken []time.Time
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "wait")) * time.Second)
			if p.at(now, interval).nextAt(interval).After(now) {
				continue
			}
			p = p.take(now, interval)
			taken = append(taken, now)
			for i := range taken {
				span := now.Sub(taken[i])
				if got, most := len(taken)-i, burst+int(span/interval)+1; got > most {
					t.Fatalf("%d passes within %s", got, span)
				}
			}
		}
	})
	p, n := passes{}, 0
	for now := start; now.Before(start.Add(10 * interval)); now = now.Add(time.Second) {
		if !p.at(now, interval).nextAt(interval).After(now) {
			p, n = p.take(now, interval), n+1
		}
	}
	if n != burst+9 {
		t.Errorf("a pool that always asks got %d passes in ten intervals", n)
	}
}

// Company is waited for, what Azure asked for is not cut short.
func TestAPoolThatIsParkedJoinsNoCompany(t *testing.T) {
	at := seconds(1000)
	g := Group{fresh: true, firstQueued: at.Add(-100 * time.Millisecond)}
	if !g.gathers(at, interval) {
		t.Error("it waits for company alone")
	}
	g.ParkedUntil = at.Add(50 * time.Millisecond)
	if g.gathers(at, interval) {
		t.Error("it is parked")
	}
}

// Its Service has waited for it long enough: a pool that has just been made waits for neither
// company nor pace, but for what Azure has asked.
func TestANewPoolIsNotKeptWaiting(t *testing.T) {
	fills := Operation{New: true, QueuedAt: seconds(1)}
	for _, row := range []struct {
		name string
		ops  []Operation
		h    History
		want time.Time
	}{
		{"for company", []Operation{fills}, History{}, seconds(1)},
		{"for pace", []Operation{fills}, History{Passes: passes{Taken: 3, refill: seconds(0)}}, seconds(1)},
		{"with a change that waits for company", []Operation{{QueuedAt: seconds(0.9)}, fills}, History{}, seconds(0.9)},
		{"but for a Retry-After", []Operation{fills}, History{NotBefore: seconds(60)}, seconds(60)},
		{"but for what is ours and not ready", []Operation{fills}, History{HoldUntil: seconds(8)}, seconds(8)},
		{"but for a retry, which has met something", []Operation{{RetryCount: 1}, fills}, History{LastAttempt: seconds(0)}, seconds(30)},
		{"once it has failed it is one like any other", []Operation{{New: true, RetryCount: 1}}, History{LastAttempt: seconds(0)}, seconds(30)},
	} {
		if got := Summarize("p", row.ops, row.h).ReadyAt(seconds(1), interval); !got.Equal(row.want) {
			t.Errorf("%s: ready at %s, want %s", row.name, got.Sub(start), row.want.Sub(start))
		}
	}
	empty, busy := Summarize("z", []Operation{fills}, History{}), Summarize("a", []Operation{{QueuedAt: seconds(0)}}, History{})
	empty.ready, busy.ready = seconds(1), seconds(0.25)
	if !empty.before(busy, seconds(2), interval) {
		t.Error("of one namespace, the pool that serves nobody goes first")
	}
}

// A new pool that Azure does not let fill keeps the pace of others.
func TestANewPoolThatFailsKeepsItsPace(t *testing.T) {
	for about, h := range map[string]History{"given up": {GaveUp: "Terminal Poison"}, "refused": {Apart: true}} {
		if g := Summarize("p", []Operation{{New: true, ChangedAt: seconds(1)}}, h); g.fills || !g.fresh {
			t.Errorf("%s: it waits for no pace", about)
		}
	}
	if g := Summarize("p", []Operation{{New: true, ChangedAt: seconds(1)}}, History{}); !g.fills {
		t.Error("a new pool is kept waiting")
	}
}
