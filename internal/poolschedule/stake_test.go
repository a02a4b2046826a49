// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Which pool ranks first, and why.
func TestWhichPoolHasMostToLose(t *testing.T) {
	for _, tt := range []struct {
		about          string
		first, then    Stake
		eitherWayRound bool
	}{
		{"one node leaves: of 2 members half of the flows are lost, of 10 a tenth",
			Stake{Stays: 1, Leaves: 1}, Stake{Stays: 9, Leaves: 1}, false},
		{"of two pools of the same node the one with fewer members left",
			Stake{Stays: 2, Leaves: 1}, Stake{Stays: 3, Leaves: 1}, false},
		{"the share counts: 3 of 5 is more than 1 of 2",
			Stake{Stays: 2, Leaves: 3}, Stake{Stays: 1, Leaves: 1}, false},
		{"of equal shares the one with more nodes that leave",
			Stake{Stays: 4, Leaves: 4}, Stake{Stays: 1, Leaves: 1}, false},
		{"where nobody takes flows any more, each is lost until somebody returns",
			Stake{Returns: 1}, Stake{Stays: 1, Leaves: 9}, false},
		{"where nobody is left a write saves nothing",
			Stake{Stays: 99, Leaves: 1}, Stake{Leaves: 2}, false},
		{"nor does one that only brings members back beside others",
			Stake{Stays: 99, Leaves: 1}, Stake{Stays: 5, Returns: 5}, false},
		{"a node leaves and another returns in its place",
			Stake{Leaves: 1, Returns: 1}, Stake{Stays: 1, Leaves: 1}, false},
		{"the same", Stake{Stays: 1, Leaves: 1}, Stake{Stays: 1, Leaves: 1}, true},
		{"nothing at all, twice", Stake{}, Stake{Stays: 7}, true},
	} {
		there, back := tt.first.compare(tt.then), tt.then.compare(tt.first)
		if there != -back || (there < 0) == tt.eitherWayRound || there > 0 {
			t.Errorf("%s: %+v before %+v is %d, and the other way round %d", tt.about, tt.first, tt.then, there, back)
		}
	}
}

// For any pools, writing them in this order loses no more flows than any other order, if all writes
// take the same time.
func TestLawOfWhatIsLost(t *testing.T) {
	stake := rapid.Custom(func(t *rapid.T) Stake {
		few := rapid.IntRange(0, 4)
		return Stake{few.Draw(t, "stays"), few.Draw(t, "leaves"), few.Draw(t, "returns")}
	})
	// what is lost in an order, if each pool has one flow per write.
	loses := func(order []Stake) float64 {
		all := 0.0
		for i, s := range order {
			part, of := s.lost()
			all += float64(i+1) * float64(part) / float64(of)
		}
		return all
	}
	rapid.Check(t, func(t *rapid.T) {
		pools := rapid.SliceOfN(stake, 2, 6).Draw(t, "pools")
		other := rapid.Permutation(pools).Draw(t, "another order")
		slices.SortFunc(pools, Stake.compare)
		if loses(pools) > loses(other)+1e-9 {
			t.Fatalf("%+v loses %f, %+v loses %f", pools, loses(pools), other, loses(other))
		}
		for _, s := range pools {
			if part, of := s.lost(); part < 0 || part > of || of < 1 {
				t.Fatalf("%+v loses %d of %d", s, part, of)
			}
		}
	})
}
