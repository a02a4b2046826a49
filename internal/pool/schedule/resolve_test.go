// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/pool/diff"
)

// TestSettle writes operations as "service:retries", with admin for admin state changes and ( for
// included ones, followed by the resulting queue and notifications.
func TestSettle(t *testing.T) {
	const maxRetries = 3
	tests := []struct {
		outcome diff.Outcome
		group   string
		last    Notification
		want    string
	}{
		{diff.Written, "a:0 a:2 b:1", notifyNone, "queue: | Updated: a b"},
		{diff.Unchanged, "a:0", notifyNone, "queue:"},
		{diff.Unchanged, "a:1", NotifyRetrying, "queue: | Updated: a"},
		{diff.Unchanged, "a:0", NotifyFailed, "queue: | Updated: a"},
		{diff.Unchanged, "a:0", NotifyUpdated, "queue:"},
		{diff.Stale, "a:0 b:3", notifyNone, "queue:"},
		{diff.Rejected, "a:0", notifyNone, "queue:"},
		{diff.Shutdown, "a:0 b:3", notifyNone, "queue:"},
		{diff.Retriable, "a:0", notifyNone, "queue: a:1 | Retrying: a"},
		{diff.Retriable, "a:0 a:1 b:2", notifyNone, "queue: a:1 a:2 b:3 | Retrying: a b"},
		{diff.Retriable, "a:3", notifyNone, "queue: | Failed: a"},
		{diff.Retriable, "a:3 b:0", notifyNone, "queue: b:1 | Retrying: b | Failed: a"},
		{diff.Retriable, "a:3 a:0", notifyNone, "queue: a:1 | Retrying: a"},
		{diff.Retriable, "a:0 a:3 b:3", notifyNone, "queue: a:1 | Retrying: a | Failed: b"},
		{diff.Terminal, "a:0 b:3", notifyNone, "queue: | Failed: a b"},
		{diff.Postponed, "a:0 b:3", notifyNone, "queue: a:0 b:3"},
		{diff.Written, "admin a:0", notifyNone, "queue: | Updated: a | done"},
		{diff.Written, "admin", NotifyRetrying, "queue: | Updated: admin | done"},
		{diff.Unchanged, "admin", notifyNone, "queue: | done"},
		{diff.Unchanged, "admin", NotifyFailed, "queue: | Updated: admin | done"},
		{diff.Stale, "admin a:0", notifyNone, "queue:"},
		{diff.Rejected, "admin", notifyNone, "queue:"},
		{diff.Shutdown, "admin", notifyNone, "queue:"},
		{diff.Retriable, "admin a:0", notifyNone, "queue: admin:1 a:1 | Retrying: a | failed"},
		{diff.Retriable, "admin a:3", notifyNone, "queue: admin:1 | Failed: a | failed"},
		{diff.Terminal, "admin a:0", notifyNone, "queue: admin:1 | Failed: a | failed"},
		{diff.Postponed, "admin a:0", notifyNone, "queue: admin:0 a:0"},
		{diff.Retriable, "admin (a:3", notifyNone, "queue: admin:1 a:3 | failed"},
		{diff.Terminal, "admin (a:0", notifyNone, "queue: admin:1 a:0 | failed"},
		{diff.Written, "admin (a:1", notifyNone, "queue: | Updated: a | done"},
		{diff.Unchanged, "admin (a:1", NotifyRetrying, "queue: | Updated: admin a | done"},
		{diff.Stale, "admin (a:1", notifyNone, "queue:"},
		{diff.Retriable, "(admin a:0", notifyNone, "queue: admin:0 a:1 | Retrying: a"},
		{diff.Terminal, "(admin a:0", notifyNone, "queue: admin:0 | Failed: a"},
		{diff.Written, "(admin a:0", notifyNone, "queue: | Updated: a | done"},
		{diff.Retriable, "-:0", notifyNone, "queue: -:1"},
		{diff.Written, "-:0", notifyNone, "queue:"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %s", tt.outcome, tt.group), func(t *testing.T) {
			var last Notifications
			var ops []Operation
			for field := range strings.FieldsSeq(tt.group) {
				op := Operation{ChangedAt: time.Now()}
				field, op.Extra = strings.CutPrefix(field, "(")
				name, retries, _ := strings.Cut(field, ":")
				op.Admin = name == "admin"
				op.Service.Name = strings.Trim(name, "-")
				_, _ = fmt.Sscan(retries, &op.RetryCount)
				ops = append(ops, op)
				last = last.With(op.Service, tt.last)
			}
			v := ResolveOperations(tt.outcome, "", time.Time{}, ops, maxRetries, PoolStatus{LastNotifications: last})
			if got := spellVerdict(v); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func spellVerdict(v Result) string {
	out := "queue:"
	for _, op := range v.Requeue {
		name := op.Service.Name
		if name == "" {
			name = "-"
		}
		if op.Extra {
			name = "still carried " + name
		}
		out += fmt.Sprintf(" %s:%d", name, op.RetryCount+op.FailedAttempts)
	}
	for _, w := range []Notification{NotifyUpdated, NotifyRetrying, NotifyFailed} {
		if len(v.Notifications[w]) > 0 {
			out += " | " + string(w) + ":"
			for _, s := range v.Notifications[w] {
				out += " " + s.Name
			}
		}
	}
	if v.AdminFailed {
		out += " | failed"
	}
	if v.AdminDone {
		out += " | done"
	}
	return out
}

func TestSettleParksByRetryAfter(t *testing.T) {
	until := seconds(90)
	v := ResolveOperations(diff.Retriable, "", until, []Operation{{}}, 3, PoolStatus{})
	if !v.Requeue[0].NextEligibleAt.Equal(until) {
		t.Errorf("parked until %s, want %s", v.Requeue[0].NextEligibleAt, until)
	}
	// The next failure without Retry-After is no longer parked.
	if v = ResolveOperations(diff.Retriable, "", time.Time{}, v.Requeue, 3, PoolStatus{}); !v.Requeue[0].NextEligibleAt.IsZero() {
		t.Errorf("still parked until %s", v.Requeue[0].NextEligibleAt)
	}
}

func TestEveryOutcomeIsSettled(t *testing.T) {
	for _, o := range []diff.Outcome{diff.Written, diff.Unchanged, diff.Stale, diff.Retriable, diff.Terminal, diff.Rejected, diff.Postponed, diff.Shutdown} {
		if _, ok := actionTable[o]; !ok {
			t.Errorf("outcome %s is not in the table", o)
		}
	}
}

// A check gives up nothing while a change is retried; alone it does.
func TestALookGivesUpNothingThatIsTriedAgain(t *testing.T) {
	web := ServiceName{Name: "web"}
	change := Operation{Service: web, ChangedAt: time.Now(), RetryCount: 1}
	for retryCount, want := range map[int]Notification{1: NotifyRetrying, 3: NotifyFailed} {
		change.RetryCount = retryCount
		v := ResolveOperations(diff.Retriable, "", time.Time{}, []Operation{change, {Service: web}}, 3, PoolStatus{HasFinalError: true})
		if len(v.Notifications) != 1 || len(v.Notifications[want]) != 1 {
			t.Errorf("with %d of 3 retries used: told %v, want %s alone", retryCount, v.Notifications, want)
		}
	}
}

// The first check of a process that only writes admin states is not reported as a pool update.
// Changes of members are, and so is the end of a reported failure.
func TestAdminStatesAfterRestartAreNoPoolReport(t *testing.T) {
	for _, tt := range []struct {
		about  string
		op     Operation
		states bool
		last   Notification
		want   Notification
	}{
		{"admin states alone", Operation{}, true, notifyNone, notifyNone},
		{"members, too", Operation{}, false, notifyNone, NotifyUpdated},
		{"after a failure", Operation{}, true, NotifyFailed, NotifyUpdated},
		{"after an attempt that failed", Operation{}, true, NotifyRetrying, NotifyUpdated},
		{"a change is known", Operation{ChangedAt: time.Now()}, true, notifyNone, NotifyUpdated},
		{"a look for drift", Operation{Resync: true}, true, notifyNone, NotifyUpdated},
	} {
		tt.op.Service = ServiceName{"shop", "web"}
		v := ResolveOperations(diff.Written, "", time.Time{}, []Operation{tt.op}, 3, PoolStatus{OnlyAdminStates: tt.states, LastNotifications: Notifications{}.With(tt.op.Service, tt.last)})
		if notified := len(v.Notifications[tt.want]) == 1; notified != (tt.want != notifyNone) || tt.want == notifyNone && len(v.Notifications) > 0 {
			t.Errorf("%s: told %v, want %q", tt.about, v.Notifications, tt.want)
		}
	}
}
