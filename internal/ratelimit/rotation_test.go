// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A namespace waits for at most as many turns as there are others in line when it joins, whatever
// joins and leaves later.
func TestLawNamespaceWaitsForAtMostOneTurnOfEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line Rotation
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		timeout := map[string]int{}
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			there := rapid.SliceOfN(name, 0, 6).Draw(t, "there")
			for n := range timeout {
				if !slices.Contains(there, n) && rapid.Bool().Draw(t, n+" waits on") {
					there = append(there, n)
				}
			}
			slices.Sort(there)
			there = slices.Compact(there)
			for n := range timeout {
				if !slices.Contains(there, n) {
					delete(timeout, n)
				}
			}
			for _, n := range there {
				if _, waits := timeout[n]; !waits {
					timeout[n] = len(there) - 1
				}
			}
			line.SetNamespaces(there)
			if len(there) == 0 {
				continue
			}
			next := slices.MinFunc(there, func(a, b string) int { return int(line.OrderOf(a)) - int(line.OrderOf(b)) })
			line.MoveToEnd(next)
			delete(timeout, next)
			for n := range timeout {
				if timeout[n]--; timeout[n] < 0 {
					t.Fatalf("%s waits on", n)
				}
			}
		}
	})
}

// In any order within rounds, a namespace waits for at most two turns of each other.
func TestLawNoRequestWaitsLongerThanTwoRounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line Rotation
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		passed := map[string]map[string]int{} // turns of others while a namespace waits
		var there []string
		for range rapid.IntRange(1, 60).Draw(t, "turns") {
			there = append(there, rapid.SliceOfN(name, 0, 2).Draw(t, "come")...)
			slices.Sort(there)
			there = slices.Compact(there)
			line.SetNamespaces(there)
			line.UpdateRound(there)
			if len(there) == 0 {
				continue
			}
			for _, n := range there {
				if passed[n] == nil {
					passed[n] = map[string]int{}
				}
			}
			current := slices.DeleteFunc(slices.Clone(there), line.InNextRound)
			if len(current) == 0 {
				t.Fatal("nobody is in this round")
			}
			next := rapid.SampledFrom(current).Draw(t, "next")
			line.MoveToEnd(next)
			delete(passed, next)
			for n, of := range passed {
				if of[next]++; of[next] > 2 {
					t.Fatalf("%s waits on for %s", n, next)
				}
			}
			if rapid.Bool().Draw(t, "has no more") {
				there = slices.DeleteFunc(there, func(n string) bool { return n == next })
			}
		}
	})
}

// The n-th item of a namespace is dealt if n of each fit; dealt and left are all items in order.
func TestLawDeal(t *testing.T) {
	type item struct {
		of string
		n  int
	}
	rapid.Check(t, func(t *rapid.T) {
		var items []item
		count := map[string]int{}
		for range rapid.IntRange(0, 30).Draw(t, "items") {
			of := rapid.SampledFrom([]string{"a", "a", "a", "b", "c"}).Draw(t, "of")
			items, count[of] = append(items, item{of, count[of]}), count[of]+1
		}
		limit := rapid.IntRange(0, 30).Draw(t, "most")
		dealt, remaining := SelectFair(items, func(i item) string { return i.of }, limit)
		if len(dealt) != min(limit, len(items)) || len(dealt)+len(remaining) != len(items) {
			t.Fatalf("%d are dealt and %d left of %d", len(dealt), len(remaining), len(items))
		}
		for _, i := range remaining {
			if (i.n+1)*len(count) <= limit {
				t.Fatalf("%v is left of %v, with room for %d", i, items, limit)
			}
		}
		for of := range count {
			n := 0
			for _, i := range slices.Concat(dealt, remaining) {
				if i.of == of {
					if i.n != n {
						t.Fatalf("%v comes out of turn: %v and %v", i, dealt, remaining)
					}
					n++
				}
			}
		}
	})
}

func BenchmarkDeal(b *testing.B) {
	items := make([]string, 10_000)
	for i := range items {
		items[i] = fmt.Sprint("ns", i%50)
	}
	for b.Loop() {
		SelectFair(items, func(s string) string { return s }, 100)
	}
}
