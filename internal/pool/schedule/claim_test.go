// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/ratelimit"
)

// Which of two claims ranks first, and why.
func TestOrderOfPools(t *testing.T) {
	now := start
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	removal := Impact{Serving: 9, Stopping: 1}
	addition := Impact{Serving: 9, Starting: 1}
	for _, tt := range []struct {
		about         string
		first, second claim
	}{
		{"admin states before a change that waits for longer", claim{kind: kindAdminStates, ready: now}, claim{kind: kindChanges, ready: ago(time.Hour)}},
		{"a change of a pool that was not written lately", claim{kind: kindChanges, ready: now, impact: addition}, claim{kind: kindRepeatedChanges, ready: ago(time.Second), impact: removal}},
		{"a look that waits for an interval, and a pool that changes all the time", claim{kind: kindChecks, ready: ago(interval)}, claim{kind: kindRepeatedChanges, ready: ago(time.Second)}},
		{"such a pool, and a look that has not", claim{kind: kindRepeatedChanges, ready: now}, claim{kind: kindChecks, ready: ago(interval - 1)}},
		{"a change before a look", claim{kind: kindChanges, ready: now}, claim{kind: kindChecks, ready: ago(9 * time.Minute)}},
		{"a look that waits for very long", claim{kind: kindChecks, ready: ago(11 * time.Minute)}, claim{kind: kindChanges, ready: now}},
		{"whose namespace had no turn yet", claim{kind: kindChanges, ready: now, impact: addition}, claim{kind: kindChanges, inNextRound: true, ready: now, impact: removal}},
		{"dead members before new ones", claim{kind: kindChanges, order: 2, ready: now, impact: removal}, claim{kind: kindChanges, order: 1, ready: ago(time.Second), impact: addition}},
		{"who serves nobody before dead members", claim{kind: kindChanges, ready: now, impact: Impact{Starting: 1}}, claim{kind: kindChanges, ready: now, impact: removal}},
		{"the larger part that is dead", claim{kind: kindChanges, ready: now, impact: Impact{Serving: 1, Stopping: 1}}, claim{kind: kindChanges, ready: now, impact: Impact{Serving: 2, Stopping: 1}}},
		{"the fewest that serve", claim{kind: kindChanges, ready: now, impact: Impact{Serving: 1, Starting: 1}}, claim{kind: kindChanges, ready: now, impact: Impact{Serving: 2, Starting: 1}}},
		{"what is known of before what is not", claim{kind: kindChanges, ready: now, impact: addition}, claim{kind: kindChanges, ready: ago(time.Second)}},
		{"a first attempt before a retry", claim{kind: kindChanges, ready: now, impact: addition}, claim{kind: kindChanges, retry: true, ready: now, impact: removal}},
		{"whoever waits for an interval", claim{kind: kindChanges, retry: true, ready: ago(interval), impact: addition}, claim{kind: kindChanges, ready: ago(interval - 1), impact: removal}},
		{"of those the one that waits longest", claim{kind: kindChanges, ready: ago(2 * interval), impact: addition}, claim{kind: kindChanges, ready: ago(interval), impact: removal}},
		{"admin states that lose more, though they wait for less", claim{kind: kindAdminStates, ready: now, impact: Impact{Serving: 1, Stopping: 1}}, claim{kind: kindAdminStates, ready: ago(2 * interval), impact: removal}},
		{"of equals whose turn it is", claim{kind: kindChanges, order: 1, ready: now}, claim{kind: kindChanges, order: 2, ready: ago(time.Second)}},
		{"of equals by name", claim{kind: kindChanges, pool: "a"}, claim{kind: kindChanges, pool: "b"}},
	} {
		if !tt.first.isBefore(tt.second, now, interval) || tt.second.isBefore(tt.first, now, interval) {
			t.Errorf("%s: goes second", tt.about)
		}
	}
}

func drawClaim(t *rapid.T, name string) claim {
	n := rapid.IntRange(0, 3)
	return claim{
		pool: aPool(n.Draw(t, name)), kind: rapid.SampledFrom([]kind{kindAdminStates, kindChanges, kindRepeatedChanges, kindChecks}).Draw(t, "kind"), inNextRound: rapid.Bool().Draw(t, "later"),
		order: uint64(n.Draw(t, "turn")), retry: rapid.Bool().Draw(t, "retry"), impact: Impact{n.Draw(t, "stays"), n.Draw(t, "leaves"), n.Draw(t, "returns")}, //nolint:gosec // small
		ready: start.Add(-time.Duration(rapid.IntRange(0, 700).Draw(t, "s")) * time.Second),
	}
}

// The order is antisymmetric and transitive.
func TestLawOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawClaim(t, "a"), drawClaim(t, "b"), drawClaim(t, "c")
		before := func(a, b claim) bool { return a.isBefore(b, start, 30*time.Second) }
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
func TestLawNoCallerStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line ratelimit.Rotation
		now, of := start, map[lb.PoolKey]*pass{}
		states := map[lb.PoolKey]time.Time{}
		namespaces := rapid.IntRange(1, 4).Draw(t, "namespaces")
		for range rapid.IntRange(1, 200).Draw(t, "passes") {
			now = now.Add(time.Duration(rapid.IntRange(1, 12).Draw(t, "s")) * time.Second)
			for range rapid.IntRange(0, 3).Draw(t, "come") {
				n := rapid.IntRange(0, 11).Draw(t, "pool")
				c := drawClaim(t, "claim")
				c.pool, c.ready = aPool(n), now
				if c.kind == kindAdminStates && now.Sub(states[c.pool]) < interval {
					c.kind = kindChanges
				}
				if of[c.pool] == nil {
					of[c.pool] = &pass{claim: c, namespace: fmt.Sprint(n % namespaces), rounds: -1}
				}
			}
			if len(of) == 0 {
				continue
			}
			seen := map[string]bool{}
			var passes []*pass
			for _, p := range of {
				seen[p.namespace] = true
				passes = append(passes, p)
			}
			line.SetNamespaces(keys(seen))
			line.UpdateRound(keys(seen))
			for _, p := range passes {
				p.order, p.inNextRound = line.OrderOf(p.namespace), line.InNextRound(p.namespace)
				p.countDown(passes, namespaces, now, interval)
			}
			next := slices.MinFunc(passes, func(a, b *pass) int {
				if a.isBefore(b.claim, now, interval) {
					return -1
				}
				return 1
			})
			delete(of, next.pool)
			line.MoveToEnd(next.namespace)
			if next.kind == kindAdminStates {
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
func (p *pass) countDown(passes []*pass, namespaces int, now time.Time, interval time.Duration) {
	if p.kind == kindRepeatedChanges && now.Sub(p.ready) >= interval { // written before it was ready
		p.kind = kindChanges
	}
	if p.rounds >= 0 || p.effectiveKind(now, interval) > kindChanges || !p.isLate(now, interval) {
		return
	}
	p.rounds = 1
	for _, o := range passes {
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
	if other.kind == kindAdminStates && p.kind != kindAdminStates {
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
	var keys []string
	for k := range of {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func aPool(n int) lb.PoolKey { return lb.PoolKey(fmt.Sprintf("p%d", n)) }
