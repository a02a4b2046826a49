// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/turns"
)

// Which of two claims ranks first, and why.
func TestWhichPoolGoesFirst(t *testing.T) {
	now := start
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	removal := Stake{Stays: 9, Leaves: 1}
	addition := Stake{Stays: 9, Returns: 1}
	for _, tt := range []struct {
		about         string
		first, second claim
	}{
		{"admin states before a change that waits for longer", claim{kind: adminStates, ready: now}, claim{kind: changes, ready: ago(time.Hour)}},
		{"a change of a pool that was not written lately", claim{kind: changes, ready: now, stake: addition}, claim{kind: again, ready: ago(time.Second), stake: removal}},
		{"a look that waits for an interval, and a pool that changes all the time", claim{kind: looks, ready: ago(interval)}, claim{kind: again, ready: ago(time.Second)}},
		{"such a pool, and a look that has not", claim{kind: again, ready: now}, claim{kind: looks, ready: ago(interval - 1)}},
		{"a change before a look", claim{kind: changes, ready: now}, claim{kind: looks, ready: ago(9 * time.Minute)}},
		{"a look that waits for very long", claim{kind: looks, ready: ago(11 * time.Minute)}, claim{kind: changes, ready: now}},
		{"whose namespace had no turn yet", claim{kind: changes, ready: now, stake: addition}, claim{kind: changes, later: true, ready: now, stake: removal}},
		{"dead members before new ones", claim{kind: changes, turn: 2, ready: now, stake: removal}, claim{kind: changes, turn: 1, ready: ago(time.Second), stake: addition}},
		{"who serves nobody before dead members", claim{kind: changes, ready: now, stake: Stake{Returns: 1}}, claim{kind: changes, ready: now, stake: removal}},
		{"the larger part that is dead", claim{kind: changes, ready: now, stake: Stake{Stays: 1, Leaves: 1}}, claim{kind: changes, ready: now, stake: Stake{Stays: 2, Leaves: 1}}},
		{"the fewest that serve", claim{kind: changes, ready: now, stake: Stake{Stays: 1, Returns: 1}}, claim{kind: changes, ready: now, stake: Stake{Stays: 2, Returns: 1}}},
		{"what is known of before what is not", claim{kind: changes, ready: now, stake: addition}, claim{kind: changes, ready: ago(time.Second)}},
		{"a first attempt before a retry", claim{kind: changes, ready: now, stake: addition}, claim{kind: changes, retry: true, ready: now, stake: removal}},
		{"whoever waits for an interval", claim{kind: changes, retry: true, ready: ago(interval), stake: addition}, claim{kind: changes, ready: ago(interval - 1), stake: removal}},
		{"of those the one that waits longest", claim{kind: changes, ready: ago(2 * interval), stake: addition}, claim{kind: changes, ready: ago(interval), stake: removal}},
		{"admin states that lose more, though they wait for less", claim{kind: adminStates, ready: now, stake: Stake{Stays: 1, Leaves: 1}}, claim{kind: adminStates, ready: ago(2 * interval), stake: removal}},
		{"of equals whose turn it is", claim{kind: changes, turn: 1, ready: now}, claim{kind: changes, turn: 2, ready: ago(time.Second)}},
		{"of equals by name", claim{kind: changes, pool: "a"}, claim{kind: changes, pool: "b"}},
	} {
		if !tt.first.before(tt.second, now, interval) || tt.second.before(tt.first, now, interval) {
			t.Errorf("%s: goes second", tt.about)
		}
	}
}

func drawClaim(t *rapid.T, name string) claim {
	n := rapid.IntRange(0, 3)
	return claim{
		pool: aPool(n.Draw(t, name)), kind: rapid.SampledFrom([]kind{adminStates, changes, again, looks}).Draw(t, "kind"), later: rapid.Bool().Draw(t, "later"),
		turn: uint64(n.Draw(t, "turn")), retry: rapid.Bool().Draw(t, "retry"), stake: Stake{n.Draw(t, "stays"), n.Draw(t, "leaves"), n.Draw(t, "returns")}, //nolint:gosec // small
		ready: start.Add(-time.Duration(rapid.IntRange(0, 700).Draw(t, "s")) * time.Second),
	}
}

// The order is antisymmetric and transitive.
func TestLawOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawClaim(t, "a"), drawClaim(t, "b"), drawClaim(t, "c")
		before := func(a, b claim) bool { return a.before(b, start, 30*time.Second) }
		if before(a, b) && before(b, a) || before(a, b) && before(b, c) && !before(a, c) {
			t.Fatalf("%v %v %v", a, b, c)
		}
	})
}

// pass is a waiting claim in the law below.
type pass struct {
	claim
	namespace string
	// rounds is how many more rounds it may wait since it became overdue; -1 before.
	rounds int
	// passes is how many passes of others it may wait for.
	passes int
}

// An overdue claim waits for no more rounds than before promises, whatever is added.
func TestLawNobodyStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line turns.Line
		now, of := start, map[lb.PoolKey]*pass{}
		states := map[lb.PoolKey]time.Time{}
		namespaces := rapid.IntRange(1, 4).Draw(t, "namespaces")
		for range rapid.IntRange(1, 200).Draw(t, "passes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "s")) * time.Second)
			for range rapid.IntRange(0, 3).Draw(t, "come") {
				n := rapid.IntRange(0, 11).Draw(t, "pool")
				c := drawClaim(t, "claim")
				c.pool, c.ready = aPool(n), now
				if c.kind == adminStates && now.Sub(states[c.pool]) < interval {
					c.kind = changes
				}
				if of[c.pool] == nil {
					of[c.pool] = &pass{claim: c, namespace: fmt.Sprint(n % namespaces), rounds: -1}
				}
			}
			if len(of) == 0 {
				continue
			}
			there := map[string]bool{}
			var all []*pass
			for _, p := range of {
				there[p.namespace] = true
				all = append(all, p)
			}
			line.Stand(keys(there))
			line.Round(keys(there))
			for _, p := range all {
				p.turn, p.later = line.Turn(p.namespace), line.Later(p.namespace)
				p.countDown(all, namespaces, now, interval)
			}
			next := slices.MinFunc(all, func(a, b *pass) int {
				if a.before(b.claim, now, interval) {
					return -1
				}
				return 1
			})
			delete(of, next.pool)
			line.Took(next.namespace)
			if next.kind == adminStates {
				states[next.pool] = now
			}
			for _, p := range of {
				p.waitsFor(t, next, namespaces)
			}
		}
	})
}

// countDown starts when a claim is overdue: it may wait for earlier ones of its namespace, the
// current round, and itself.
func (p *pass) countDown(all []*pass, namespaces int, now time.Time, interval time.Duration) {
	if p.kind == again && now.Sub(p.ready) >= interval { // written before it was ready
		p.kind = changes
	}
	if p.rounds >= 0 || p.rank(now, interval) > changes || !p.overdue(now, interval) {
		return
	}
	p.rounds = 1
	for _, o := range all {
		if o != p && o.namespace == p.namespace && !o.ready.After(p.ready) {
			p.rounds++
		}
	}
	p.passes = (p.rounds + 1) * namespaces
}

func (p *pass) waitsFor(t *rapid.T, other *pass, namespaces int) {
	if p.rounds < 0 {
		return
	}
	if other.kind == adminStates && p.kind != adminStates {
		if other.namespace == p.namespace {
			p.passes += namespaces
		}
		return
	}
	if p.passes--; p.passes < 0 {
		t.Fatalf("%+v still waits", p)
	}
}

func keys(of map[string]bool) []string {
	var all []string
	for k := range of {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

func aPool(n int) lb.PoolKey { return lb.PoolKey(fmt.Sprintf("p%d", n)) }
