// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// ofNamespace returns a group with a due change.
func ofNamespace(namespace, pool string) Group {
	return NewGroup(lb.PoolKey(pool), []Operation{{Ref: Ref{Namespace: namespace, Name: pool}, OutOfSync: true}}, History{})
}

func namesOf(groups []Group) []string {
	var names []string
	for _, g := range groups {
		names = append(names, string(g.Pool))
	}
	return names
}

func TestTurn(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	drains := NewGroup("drains", []Operation{{Ref: Ref{Namespace: "a"}, Admin: true, QueuedAt: start}}, History{})
	groups := []Group{ofNamespace("a", "a1"), ofNamespace("a", "a2"), ofNamespace("b", "b1"), NewCheckGroup("looks", "c", start, History{}), drains}
	for _, tt := range []struct {
		name  string
		after time.Duration
		do    func(*Turn)
		want  []string
	}{
		{"nothing was attempted", 0, func(*Turn) {}, []string{"a1", "a2", "b1", "looks", "drains"}},
		{"only a look", 0, func(t *Turn) { t.StartAttempt() }, []string{"a1", "a2", "b1", "drains"}},
		{"a namespace has settled", 0, func(t *Turn) { t.StartAttempt(); t.AddAttempt("a"); t.MarkDone("a") }, []string{"b1", "drains"}},
		{"several pools in one attempt", 0, func(t *Turn) { t.StartAttempt(); t.AddAttempt("a"); t.AddAttempt("a") }, []string{"a1", "a2", "b1", "drains"}},
		{"given back twice", 0, func(t *Turn) { t.StartAttempt(); t.AddAttempt("a"); t.StartAttempt(); t.AddAttempt("a") }, []string{"b1", "drains"}},
		{"all have settled", 0, func(t *Turn) {
			t.StartAttempt()
			t.AddAttempt("a")
			t.MarkDone("a")
			t.AddAttempt("b")
			t.MarkDone("b")
		}, []string{"drains"}},
		{"it took too long", turnTimeout, func(t *Turn) { t.StartAttempt() }, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			turn := NewTurn(start)
			tt.do(turn)
			if got := namesOf(turn.FilterRemaining(groups, start.Add(tt.after), time.Minute)); !slices.Equal(got, tt.want) {
				t.Errorf("left: %v, want %v", got, tt.want)
			}
		})
	}
}

// A turn serves each namespace with a due change once and then ends, however many changes another
// namespace has: pools and load balancer writes wait no longer.
func TestLawATurnServesEachNamespaceOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		turn, settled, attempts := NewTurn(start), map[string]int{}, 0
		var groups []Group
		for i := range rapid.IntRange(1, 30).Draw(t, "pools") {
			groups = append(groups, ofNamespace(rapid.SampledFrom([]string{"a", "a", "a", "b", "c"}).Draw(t, "namespace"), fmt.Sprint("p", i)))
		}
		for {
			remaining := turn.FilterRemaining(groups, start, time.Minute)
			if len(remaining) == 0 {
				break
			}
			pick := rapid.SampledFrom(remaining).Draw(t, "pick")
			turn.StartAttempt()
			turn.AddAttempt(pick.Namespace)
			if attempts++; rapid.IntRange(0, 3).Draw(t, "given back") > 0 {
				turn.MarkDone(pick.Namespace)
				settled[pick.Namespace]++
			}
		}
		for _, g := range groups {
			if n := settled[g.Namespace]; n > 1 || n == 0 && turn.shares[g.Namespace].attempts < maxTurnAttempts {
				t.Fatalf("%s was served %d times", g.Namespace, n)
			}
		}
		if attempts > 3*maxTurnAttempts {
			t.Fatalf("%d attempts for three namespaces", attempts)
		}
	})
}
