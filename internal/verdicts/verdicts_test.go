// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/wholewrite"
)

// hung is a store that never responds.
type hung struct{}

func (hung) Read(context.Context) (map[string]wholewrite.Record, error) { return nil, nil }

func (hung) Keep(ctx context.Context, _ string, _ wholewrite.Record) error {
	<-ctx.Done()
	return ctx.Err()
}

// A trial waits for the store no longer than the timeout, whatever else is writing.
func TestARecordThatHangsKeepsNoLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{Setting: wholewrite.Auto, Store: hung{}, Version: "v", Log: slog.New(slog.DiscardHandler)})
		v.read(t.Context())
		go func() { _ = v.write(t.Context(), "a") }()
		synctest.Wait()
		start := time.Now()
		if err := v.Begin(t.Context(), "b", []wholewrite.Change{wholewrite.Addresses}); err == nil {
			t.Error("a trial that is not on record")
		}
		if took := time.Since(start); took > 2*recordPatience {
			t.Errorf("the lane waited %s", took)
		}
	})
}

// The third consecutive rejection, and no earlier one, revokes proven support; three more successes
// restore it.
func TestRefusalsInARow(t *testing.T) {
	v, own := New(Config{Pipelined: wholewrite.Auto, Log: slog.New(slog.DiscardHandler)}), []wholewrite.Change{wholewrite.Overlapping}
	stays := func() {
		v.Learn(t.Context(), "a", map[wholewrite.Change]behaviour.Answer{wholewrite.Overlapping: behaviour.Supersede})
	}
	for range overlapsProven {
		stays()
	}
	for n := 1; n < overlapsRefused; n++ {
		if v.Refused(t.Context(), "A", behaviour.Lock) || v.answer() != behaviour.Supersede {
			t.Errorf("refusal %d: %s", n, v.answer())
		}
	}
	stays()
	if v.Proven("a", own) {
		t.Error("proven by one that stays after a refusal")
	}
	for n := 1; n <= overlapsRefused; n++ {
		if known := v.Refused(t.Context(), "a", behaviour.Lock); known != (n == overlapsRefused) {
			t.Errorf("refusal %d: %v", n, known)
		}
	}
	if v.answer() != behaviour.Lock {
		t.Errorf("after three in a row: %s", v.answer())
	}
}

func (v *Verdicts) answer() behaviour.Answer {
	return v.Answer("a", wholewrite.Overlapping, time.Now())
}
