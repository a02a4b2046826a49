// SPDX-License-Identifier: Apache-2.0

package behavior_test

import (
	"math/rand/v2"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
)

// TestWorldsCover checks that all answers and all pairs of two-answer questions occur.
func TestWorldsCover(t *testing.T) {
	type answer struct {
		question int
		want     behavior.Result
	}
	single, pair := map[answer]bool{}, map[[2]answer]bool{}
	properties := behavior.AllProperties()
	for _, w := range append(behavior.SampleBehaviors(), behavior.AssumedBehavior()) {
		for i := range properties {
			single[answer{i, w.GetResult(i)}] = true
			for j := range i {
				pair[[2]answer{{i, w.GetResult(i)}, {j, w.GetResult(j)}}] = true
			}
		}
	}
	for i, q := range properties {
		for _, a := range q.Results {
			if !single[answer{i, a}] {
				t.Errorf("%s=%s occurs in no world", q.Name, a)
			}
			for j, other := range properties[:i] {
				for _, b := range other.Results {
					if len(q.Results) == 2 && len(other.Results) == 2 && !pair[[2]answer{{i, a}, {j, b}}] {
						t.Errorf("%s=%s never meets %s=%s", q.Name, a, other.Name, b)
					}
				}
			}
		}
	}
}

// TestDrawn checks that results are complete and depend only on the source.
func TestDrawn(t *testing.T) {
	draw := func() behavior.Behavior { return behavior.RandomBehavior(rand.New(rand.NewPCG(7, 0)).IntN) }
	b := draw()
	if b != draw() {
		t.Error("the same source gives another world")
	}
	for i, q := range behavior.AllProperties() {
		if b.GetResult(i) == "" {
			t.Errorf("%s has no answer", q.Name)
		}
	}
}
