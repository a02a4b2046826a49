// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"testing"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/pool/schedule"
)

// takenOver checks a pool in a new process, given the status of the previous one.
func (w *world) takenOver(last schedule.LastNotification) {
	w.pool(web, "")
	w.set(func() { w.wanted[web.Name] = addresses("n1=10.0.0.1") })
	w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: web.Name}, Pool: web, Service: schedule.ServiceName{Name: web.Name}, LastNotification: last})
}

// Notifications of an earlier process are not repeated.
func TestTheNextProcessRepeatsNothing(t *testing.T) {
	refused := armerror.Failure{Status: 403, Codes: []string{"AuthorizationFailed"}}
	busy := armerror.Failure{Status: 409, Codes: []string{"AnotherOperationInProgress"}}
	for _, tt := range []struct {
		name     string
		reported schedule.LastNotification
		meets    armerror.Failure
		want     []string
	}{
		{"Failed, for the same", schedule.LastNotification{IsFailure: true, FailureReason: "Terminal AuthorizationFailed"}, refused, []string{"web Terminal"}},
		{"Failed after a spent budget, for the same: one silent attempt", schedule.LastNotification{IsFailure: true, FailureReason: "Retriable AnotherOperationInProgress"}, busy, []string{"web Retriable"}},
		{"Failed, for something else", schedule.LastNotification{IsFailure: true, FailureReason: "Retriable AnotherOperationInProgress"}, refused, []string{"web Terminal Failed:web"}},
		{"Retrying: each attempt that failed is told", schedule.LastNotification{IsFailure: true}, busy, []string{"web Retriable Retrying:web", "web Retriable Failed:web"}},
		{"nothing", schedule.LastNotification{}, refused, []string{"web Terminal Failed:web"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.failing("PUT", -1, tt.meets)
				w.takenOver(tt.reported)
				w.wait(2 * time.Minute)
				w.expectReports(tt.want...)
			})
		})
	}
}

// A failure reported by an earlier process is cleared once the pool is in sync.
func TestNextProcessReportsRecovery(t *testing.T) {
	for _, tt := range []struct {
		name, holds string
		reported    schedule.LastNotification
		want        string
	}{
		{"Retrying, and the write had landed", "n1=10.0.0.1", schedule.LastNotification{IsFailure: true}, "web Unchanged Updated:web"},
		{"Failed, and the write had landed", "n1=10.0.0.1", schedule.LastNotification{IsFailure: true, FailureReason: "Terminal Bad"}, "web Unchanged Updated:web"},
		{"Failed, and it is written now", "", schedule.LastNotification{IsFailure: true, FailureReason: "Terminal Bad"}, "web Written Updated:web"},
		{"Updated, and it is as it was", "n1=10.0.0.1", schedule.LastNotification{}, "web Unchanged"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inDriftingWorld(t, 1, period, func(w *world) {
				w.takenOver(tt.reported)
				w.set(func() { w.pool(web, tt.holds) })
				w.wait(10 * time.Second)
				w.expectReports(tt.want)
				w.lanes.Add(schedule.Operation{Ref: schedule.Ref{Name: web.Name}, Pool: web, Service: schedule.ServiceName{Name: web.Name}, LastNotification: tt.reported}) // outdated
				w.wait(time.Minute)
				w.expectReports("web Unchanged")
			})
		})
	}
}

// A change after the restart has its own retries and notifications, and the report states the
// reason for giving up.
func TestChangeAfterTakeoverIsReported(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.failing("PUT", -1, armerror.Failure{Status: 409, Codes: []string{"Busy"}})
		w.takenOver(schedule.LastNotification{IsFailure: true, FailureReason: "Retriable Busy"})
		w.wait(time.Minute)
		w.expectGivenUpFor("Retriable Busy")
		w.expectReports("web Retriable")
		w.change(web, "n1=10.0.0.1 n2=10.0.0.2")
		w.wait(2 * time.Minute)
		w.expectGivenUpFor("Retriable Busy")
		w.expectReports("web Retriable Retrying:web", "web Retriable Failed:web")
		w.failing("PUT", 0, armerror.Failure{})
		w.change(web, "n1=10.0.0.1")
		w.wait(time.Minute)
		w.expectGivenUpFor("")
		w.expectReports("web Written Updated:web")
	})
}

func (w *world) expectGivenUpFor(want string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := w.reports[len(w.reports)-1].FailureReason; got != want {
		w.t.Errorf("given up for %q, want %q", got, want)
	}
}
