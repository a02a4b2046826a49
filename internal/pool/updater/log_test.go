// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/schedule"
)

// A failed attempt is logged with the time of the next one. The same failure again is logged only if it is the final one, or
// that of a resync.
func TestFailuresInTheLog(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	fault := &armerror.Fault{Class: armerror.Retriable, Code: "TooManyRequests"}
	same, other := schedule.History{LastFailure: diff.ErrorName(fault)}, schedule.History{LastFailure: "other"}
	for name, tt := range map[string]struct {
		before schedule.History
		report Report
		want   string
	}{
		"the first":      {schedule.History{}, Report{RetryAt: at, NextCheckAt: at.Add(time.Hour)}, "level=WARN nextAttempt=2026-03-01T12:00:05Z"},
		"after another":  {other, Report{RetryAt: at}, "level=WARN nextAttempt=2026-03-01T12:00:05Z"},
		"the same":       {same, Report{RetryAt: at}, "level=DEBUG nextAttempt=2026-03-01T12:00:05Z"},
		"admin states":   {same, Report{AdminRetryAt: at, NextCheckAt: at.Add(time.Hour)}, "level=DEBUG nextAttempt=2026-03-01T12:00:05Z"},
		"the final one":  {same, Report{NextCheckAt: at, Failed: []schedule.ServiceName{{Name: "web"}}}, "level=WARN nextAttempt=2026-03-01T12:00:05Z"},
		"of a resync":    {same, Report{NextCheckAt: at, Resync: true}, "level=WARN nextAttempt=2026-03-01T12:00:05Z"},
		"no further one": {schedule.History{}, Report{}, "level=WARN"},
	} {
		var log bytes.Buffer
		c := Config{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		tt.report.Fault = fault
		c.logResult(t.Context(), diff.Result{Fault: fault, Observed: -1}, tt.report, tt.before)
		var got []string
		for field := range strings.FieldsSeq(log.String()) {
			if strings.HasPrefix(field, "level=") || strings.HasPrefix(field, "nextAttempt=") {
				got = append(got, field)
			}
		}
		if current := strings.Join(got, " "); current != tt.want {
			t.Errorf("%s: %s, want %s", name, current, tt.want)
		}
	}
	if h := (schedule.History{}).AfterAttempt(diff.Retriable, fault, schedule.Cause{}, at, at, time.Second); h.LastFailure != same.LastFailure {
		t.Errorf("the last failure is %q", h.LastFailure)
	}
	if h := same.AfterAttempt(diff.Unchanged, nil, schedule.Cause{}, at, at, time.Second); h.LastFailure != "" {
		t.Errorf("after a success the last failure is %q", h.LastFailure)
	}
}

// A pool that keeps failing is logged for its first attempt and for the final one.
func TestARepeatedFailureInTheLog(t *testing.T) {
	var log bytes.Buffer
	inWorldOf(t, Config{MaxRetries: 3, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(w *world) {
		w.pool(web, "")
		w.fail = func(string, lb.PoolID) error {
			return &armerror.Fault{Class: armerror.Retriable, Code: "Busy"}
		}
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Hour)
	})
	if n := strings.Count(log.String(), "pool out of sync"); n != 2 {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
}
