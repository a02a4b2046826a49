// SPDX-License-Identifier: Apache-2.0

package behaviour_test

import (
	"math/rand/v2"
	"testing"

	"weir.dev/weir/internal/behaviour"
)

// TestWorldsCover checks that all answers and all pairs of two-answer questions occur.
func TestWorldsCover(t *testing.T) {
	type answer struct {
		question int
		is       behaviour.Answer
	}
	single, pair := map[answer]bool{}, map[[2]answer]bool{}
	all := behaviour.Questions()
	for _, w := range append(behaviour.Worlds(), behaviour.Assumed()) {
		for i := range all {
			single[answer{i, w.Get(i)}] = true
			for j := range i {
				pair[[2]answer{{i, w.Get(i)}, {j, w.Get(j)}}] = true
			}
		}
	}
	for i, q := range all {
		for _, a := range q.Answers {
			if !single[answer{i, a}] {
				t.Errorf("%s=%s occurs in no world", q.Name, a)
			}
			for j, other := range all[:i] {
				for _, b := range other.Answers {
					if len(q.Answers) == 2 && len(other.Answers) == 2 && !pair[[2]answer{{i, a}, {j, b}}] {
						t.Errorf("%s=%s never meets %s=%s", q.Name, a, other.Name, b)
					}
				}
			}
		}
	}
}

// TestDrawn checks that results are complete and depend only on the source.
func TestDrawn(t *testing.T) {
	draw := func() behaviour.Behaviour { return behaviour.Drawn(rand.New(rand.NewPCG(7, 0)).IntN) }
	b := draw()
	if b != draw() {
		t.Error("the same source gives another world")
	}
	for i, q := range behaviour.Questions() {
		if b.Get(i) == "" {
			t.Errorf("%s has no answer", q.Name)
		}
	}
}
