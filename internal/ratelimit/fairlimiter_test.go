// SPDX-License-Identifier: Apache-2.0

package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Rounds for the same changing objects are spaced out; a quiet minute ends that.
func TestRoundsMoveApart(t *testing.T) {
	var s FairLimiter
	now, wants := noon, 0
	round := func(object string) time.Duration {
		wants++
		change := []SharedChange{{"shop", object, wants}}
		if at := s.NextRoundAt(change); at.After(now) {
			now = at
		}
		s.RecordChanges(change, now)
		return max(0, s.NextRoundAt(change).Sub(now))
	}
	for i := range maxFreeRounds + 1 { // the first is no repetition
		if pause := round("web"); pause != 0 {
			t.Fatalf("round %d is followed by a pause of %s", i, pause)
		}
	}
	for _, want := range []time.Duration{1, 2, 4, 8, 16, 16} {
		if pause := round("web"); pause != want*time.Second {
			t.Fatalf("pause %s, want %s", pause, want*time.Second)
		}
	}
	if at := s.NextRoundAt([]SharedChange{{"shop", "web", 0}, {"blog", "web", 0}}); at.After(now) {
		t.Errorf("a round for another namespace waits until %s", at)
	}
	now = now.Add(resetAfter)
	if pause := round("web"); pause != 0 {
		t.Errorf("after a quiet minute a round is followed by a pause of %s", pause)
	}
}

// New or unchanged objects cause no pause, whatever their number.
func TestChangesThatAreNoRepetition(t *testing.T) {
	var s FairLimiter
	for i := range 1000 {
		s.RecordChanges([]SharedChange{{"shop", fmt.Sprint("new ", i), i}, {"shop", "same", "it"}}, noon.Add(time.Duration(i)*time.Second))
	}
	if at := s.NextRoundAt([]SharedChange{{"shop", "same", "it"}}); !at.IsZero() {
		t.Errorf("the next round waits until %s", at)
	}
	s.RecordChanges(nil, noon.Add(time.Hour))
	if len(s.lastChanges)+len(s.namespaces) > 0 {
		t.Errorf("%d changes are remembered after an hour", len(s.lastChanges))
	}
}

// However a namespace times changes of the same objects, it causes at most maxRounds rounds in five
// minutes: its free rounds once per calm minute.
func TestLawRoundsOfOneNamespaceAreBounded(t *testing.T) {
	const window, maxRounds = 5 * time.Minute, 60
	pauses := []time.Duration{0, 0, 0, 100 * time.Millisecond, time.Second, 20 * time.Second, resetAfter - time.Second, resetAfter}
	rapid.Check(t, func(t *rapid.T) {
		var s FairLimiter
		var rounds []time.Time
		now := noon
		s.RecordChanges([]SharedChange{{"shop", "a", -1}, {"shop", "b", -1}}, now)
		for n := range rapid.IntRange(1, 400).Draw(t, "rounds") {
			change := []SharedChange{{"shop", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "object"), n}}
			now = now.Add(rapid.SampledFrom(pauses).Draw(t, "later"))
			if at := s.NextRoundAt(change); at.After(now) {
				now = at
			}
			s.RecordChanges(change, now)
			rounds = append(rounds, now)
			first := 0
			for now.Sub(rounds[first]) >= window {
				first++
			}
			if count := len(rounds) - first; count > maxRounds {
				t.Fatalf("%d rounds in %s", count, window)
			}
		}
	})
}
