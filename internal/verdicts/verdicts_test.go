// SPDX-License-Identifier: Apache-2.0

package verdicts

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/wholewrite"
)

// hung is a record that answers nobody.
type hung struct{}

func (hung) Read(context.Context) (map[string]wholewrite.Record, error) { return nil, nil }

func (hung) Keep(ctx context.Context, _ string, _ wholewrite.Record) error {
	<-ctx.Done()
	return ctx.Err()
}

// A trial waits for the record no longer than its patience, whoever else is writing it.
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
