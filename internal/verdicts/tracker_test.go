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

func (hung) ReadRecords(context.Context) (map[string]wholewrite.Record, error) { return nil, nil }

func (hung) WriteRecord(ctx context.Context, _ string, _ wholewrite.Record) error {
	<-ctx.Done()
	return ctx.Err()
}

// A trial waits for the store no longer than the timeout, whatever else is writing.
func TestARecordThatHangsKeepsNoLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(Config{BatchSetting: wholewrite.Auto, Store: hung{}, Version: "v", Log: slog.New(slog.DiscardHandler)})
		v.readRecords(t.Context())
		go func() { _ = v.writeRecord(t.Context(), "a") }()
		synctest.Wait()
		start := time.Now()
		if err := v.StartTrial(t.Context(), "b", []wholewrite.Change{wholewrite.Addresses}); err == nil {
			t.Error("a trial that is not on record")
		}
		if took := time.Since(start); took > 2*storeTimeout {
			t.Errorf("the lane waited %s", took)
		}
	})
}

// The third consecutive rejection, and no earlier one, revokes proven support; three more successes
// restore it.
func TestRefusalsInARow(t *testing.T) {
	v, own := New(Config{OverlapSetting: wholewrite.Auto, Log: slog.New(slog.DiscardHandler)}), []wholewrite.Change{wholewrite.Overlap}
	stays := func() {
		v.RecordResults(t.Context(), "a", map[wholewrite.Change]behaviour.Result{wholewrite.Overlap: behaviour.Supersede})
	}
	for range minSuccesses {
		stays()
	}
	for n := 1; n < minFailures; n++ {
		if v.RecordFailure(t.Context(), "A", behaviour.Lock) || v.answer() != behaviour.Supersede {
			t.Errorf("refusal %d: %s", n, v.answer())
		}
	}
	stays()
	if v.IsSupported("a", own) {
		t.Error("proven by one that stays after a refusal")
	}
	for n := 1; n <= minFailures; n++ {
		if known := v.RecordFailure(t.Context(), "a", behaviour.Lock); known != (n == minFailures) {
			t.Errorf("refusal %d: %v", n, known)
		}
	}
	if v.answer() != behaviour.Lock {
		t.Errorf("after three in a row: %s", v.answer())
	}
}

func (v *Tracker) answer() behaviour.Result {
	return v.ObservedResult("a", wholewrite.Overlap, time.Now())
}
