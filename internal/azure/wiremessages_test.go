// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/updater"
)

// The table again through a real worker: the event of each response, and whether and when the
// worker retries.
func TestReportsToService(t *testing.T) {
	for _, section := range wireTable() {
		for _, row := range section.rows {
			for _, c := range requestKinds {
				if row.resultIn(c) == notDriven {
					continue
				}
				for _, maxRetries := range []int{3, 0} {
					t.Run(fmt.Sprintf("%s/%s/%s/%d retries", section.title, row.name, c, maxRetries), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { row.checkWorker(t, c, maxRetries) })
					})
				}
			}
		}
	}
}

func (r wireRow) checkWorker(t *testing.T, c requestKind, maxRetries int) {
	t.Helper()
	wire, from := newStaged(r, c), 0
	var notBefore time.Time
	attempts := runWorker(t, wire, maxRetries, func(attempt int, report updater.Report) {
		start := wire.calls[from].at
		if start.Before(notBefore) {
			t.Errorf("attempt %d began %v too early", attempt, notBefore.Sub(start))
		}
		notBefore = start.Add(interval)
		if report.WillRetry && report.NextEligibleAt.After(notBefore) {
			notBefore = report.NextEligibleAt
		}
		if attempt == 1 {
			r.checkFirst(t, c, wire, report, maxRetries)
		}
		if want := r.event(c, attempt, maxRetries); notification(t, report) != want {
			t.Errorf("after attempt %d the Service was told %q, want %q", attempt, notification(t, report), want)
		}
		from = len(wire.calls)
	})
	if want := r.attempts(c, maxRetries); attempts != want {
		t.Errorf("%d attempts, want %d", attempts, want)
	}
	// What the SDK retries the worker must not retry. After an accepted write the worker may retry
	// the write itself.
	if f := r.resultIn(c); !c.follows() && f.requests > 1 && attempts > 1 {
		t.Errorf("two layers ask again: %d requests an attempt, %d attempts", f.requests, attempts)
	}
}

// checkFirst checks the requests and the result of the first attempt.
func (r wireRow) checkFirst(t *testing.T, c requestKind, wire *stagedARM, report updater.Report, maxRetries int) {
	t.Helper()
	f := r.resultIn(c)
	end, retryAt := r.end(c, wire.calls[0].at)
	if n, want := wire.countRequests(0), f.requests*r.writes(c); n != want {
		t.Errorf("%d requests in the first attempt, want %d", n, want)
	}
	if c == toGet && f.class == "" {
		end = end.Add(pollInterval) // the write that follows a successful read
	}
	if !report.At.Equal(end) {
		t.Errorf("the first attempt ended %v late", report.At.Sub(end))
	}
	if f.class == "" {
		if report.Fault != nil || report.WillRetry {
			t.Errorf("fault %v, requeued %v; want success", report.Fault, report.WillRetry)
		}
		return
	}
	if report.Fault == nil || report.Fault.Class != f.class || report.Fault.Code != r.resultCode(c) || !report.Fault.RetryAt.Equal(retryAt) {
		t.Errorf("got %#v, want %s %q at %v", report.Fault, f.class, r.resultCode(c), retryAt)
	}
	requeued := f.class == armerror.Retriable && maxRetries > 0
	if report.WillRetry != requeued {
		t.Errorf("requeued %v, want %v", report.WillRetry, requeued)
	}
	if !retryAt.After(report.At) {
		retryAt = time.Time{}
	}
	if !report.NextEligibleAt.Equal(retryAt) {
		t.Errorf("parked until %v, want %v", report.NextEligibleAt, retryAt)
	}
}

// writes returns the number of writes per attempt: a 412 without Retry-After causes a second read
// and write.
func (r wireRow) writes(c requestKind) int {
	if c == toPut && r.answer.status == http.StatusPreconditionFailed && r.retryAt(time.Now()).IsZero() {
		return 2
	}
	return 1
}

// event returns the event of an attempt if Azure's response does not change.
func (r wireRow) event(c requestKind, attempt, maxRetries int) string {
	switch f := r.resultIn(c); {
	case f.class == armerror.Stale:
		return ""
	case f.class == armerror.Terminal:
		return "Failed"
	case f.class == "", attempt > 1 && r.isApplied(c):
		return "Updated"
	case attempt > maxRetries:
		return "Failed"
	}
	return "Retrying"
}

// attempts returns the number of attempts of the worker.
func (r wireRow) attempts(c requestKind, maxRetries int) int {
	switch {
	case r.resultIn(c).class != armerror.Retriable:
		return 1
	case r.isApplied(c):
		return min(1+maxRetries, 2) // the second read finds the pool in sync
	}
	return 1 + maxRetries
}

// isApplied reports whether the write took effect although its attempt failed.
func (r wireRow) isApplied(c requestKind) bool { return c.follows() && !r.ends }
