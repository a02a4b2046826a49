// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Which pool ranks first, and why.
func TestOrderByImpact(t *testing.T) {
	for _, tt := range []struct {
		about          string
		first, then    Impact
		eitherWayRound bool
	}{
		{"one node leaves: of 2 members half of the flows are lost, of 10 a tenth",
			Impact{Serving: 1, Stopping: 1}, Impact{Serving: 9, Stopping: 1}, false},
		{"of two pools of the same node the one with fewer members left",
			Impact{Serving: 2, Stopping: 1}, Impact{Serving: 3, Stopping: 1}, false},
		{"the share counts: 3 of 5 is more than 1 of 2",
			Impact{Serving: 2, Stopping: 3}, Impact{Serving: 1, Stopping: 1}, false},
		{"of equal shares the one with more nodes that leave",
			Impact{Serving: 4, Stopping: 4}, Impact{Serving: 1, Stopping: 1}, false},
		{"where nobody takes flows any more, each is lost until somebody returns",
			Impact{Starting: 1}, Impact{Serving: 1, Stopping: 9}, false},
		{"where nobody is left a write saves nothing",
			Impact{Serving: 99, Stopping: 1}, Impact{Stopping: 2}, false},
		{"nor does one that only brings members back beside others",
			Impact{Serving: 99, Stopping: 1}, Impact{Serving: 5, Starting: 5}, false},
		{"a node leaves and another returns in its place",
			Impact{Stopping: 1, Starting: 1}, Impact{Serving: 1, Stopping: 1}, false},
		{"the same", Impact{Serving: 1, Stopping: 1}, Impact{Serving: 1, Stopping: 1}, true},
		{"nothing at all, twice", Impact{}, Impact{Serving: 7}, true},
	} {
		forward, back := tt.first.compareImpact(tt.then), tt.then.compareImpact(tt.first)
		if forward != -back || (forward < 0) == tt.eitherWayRound || forward > 0 {
			t.Errorf("%s: %+v before %+v is %d, and the other way round %d", tt.about, tt.first, tt.then, forward, back)
		}
	}
}

// For any pools, writing them in this order loses no more flows than any other order, if all writes
// take the same time.
func TestLawOfImpact(t *testing.T) {
	stake := rapid.Custom(func(t *rapid.T) Impact {
		few := rapid.IntRange(0, 4)
		return Impact{few.Draw(t, "stays"), few.Draw(t, "leaves"), few.Draw(t, "returns")}
	})
	// what is lost in an order, if each pool has one flow per write.
	loses := func(order []Impact) float64 {
		total := 0.0
		for i, s := range order {
			part, of := s.lossRatio()
			total += float64(i+1) * float64(part) / float64(of)
		}
		return total
	}
	rapid.Check(t, func(t *rapid.T) {
		pools := rapid.SliceOfN(stake, 2, 6).Draw(t, "pools")
		other := rapid.Permutation(pools).Draw(t, "another order")
		slices.SortFunc(pools, Impact.compareImpact)
		if loses(pools) > loses(other)+1e-9 {
			t.Fatalf("%+v loses %f, %+v loses %f", pools, loses(pools), other, loses(other))
		}
		for _, s := range pools {
			if part, of := s.lossRatio(); part < 0 || part > of || of < 1 {
				t.Fatalf("%+v loses %d of %d", s, part, of)
			}
		}
	})
}

func TestOnlyAdditionsGather(t *testing.T) {
	for _, tt := range []struct {
		impact Impact
		want   bool
	}{
		{Impact{Serving: 3, Starting: 1}, true},
		{Impact{Serving: 3, Starting: 1, Stopping: 1}, false},
		{Impact{Serving: 3, Stopping: 1}, false},
		{Impact{Stopping: 1}, false},
		{Impact{Starting: 2}, false}, // none serves yet
		{Impact{}, false},            // unknown
	} {
		if got := (Group{impact: tt.impact}).CanGather(); got != tt.want {
			t.Errorf("%+v: %t", tt.impact, got)
		}
	}
}
