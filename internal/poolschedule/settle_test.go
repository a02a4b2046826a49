// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/poolwrite"
)

// TestSettle writes operations as "service:retries", with admin for admin state changes and ( for
// included ones, followed by the resulting queue and notifications.
func TestSettle(t *testing.T) {
	const maxRetries = 3
	tests := []struct {
		outcome poolwrite.Outcome
		group   string
		last    Word
		want    string
	}{
		{poolwrite.Written, "a:0 a:2 b:1", wordNone, "queue: | Updated: a b"},
		{poolwrite.Unchanged, "a:0", wordNone, "queue:"},
		{poolwrite.Unchanged, "a:1", WordRetrying, "queue: | Updated: a"},
		{poolwrite.Unchanged, "a:0", WordFailed, "queue: | Updated: a"},
		{poolwrite.Unchanged, "a:0", WordUpdated, "queue:"},
		{poolwrite.Stale, "a:0 b:3", wordNone, "queue:"},
		{poolwrite.Refused, "a:0", wordNone, "queue:"},
		{poolwrite.Shutdown, "a:0 b:3", wordNone, "queue:"},
		{poolwrite.Retriable, "a:0", wordNone, "queue: a:1 | Retrying: a"},
		{poolwrite.Retriable, "a:0 a:1 b:2", wordNone, "queue: a:1 a:2 b:3 | Retrying: a b"},
		{poolwrite.Retriable, "a:3", wordNone, "queue: | Failed: a"},
		{poolwrite.Retriable, "a:3 b:0", wordNone, "queue: b:1 | Retrying: b | Failed: a"},
		{poolwrite.Retriable, "a:3 a:0", wordNone, "queue: a:1 | Retrying: a"},
		{poolwrite.Retriable, "a:0 a:3 b:3", wordNone, "queue: a:1 | Retrying: a | Failed: b"},
		{poolwrite.Terminal, "a:0 b:3", wordNone, "queue: | Failed: a b"},
		{poolwrite.Postponed, "a:0 b:3", wordNone, "queue: a:0 b:3"},
		{poolwrite.Written, "admin a:0", wordNone, "queue: | Updated: a | done"},
		{poolwrite.Written, "admin", WordRetrying, "queue: | Updated: admin | done"},
		{poolwrite.Unchanged, "admin", wordNone, "queue: | done"},
		{poolwrite.Unchanged, "admin", WordFailed, "queue: | Updated: admin | done"},
		{poolwrite.Stale, "admin a:0", wordNone, "queue:"},
		{poolwrite.Refused, "admin", wordNone, "queue:"},
		{poolwrite.Shutdown, "admin", wordNone, "queue:"},
		{poolwrite.Retriable, "admin a:0", wordNone, "queue: admin:1 a:1 | Retrying: a | failed"},
		{poolwrite.Retriable, "admin a:3", wordNone, "queue: admin:1 | Failed: a | failed"},
		{poolwrite.Terminal, "admin a:0", wordNone, "queue: admin:1 | Failed: a | failed"},
		{poolwrite.Postponed, "admin a:0", wordNone, "queue: admin:0 a:0"},
		{poolwrite.Retriable, "admin (a:3", wordNone, "queue: admin:1 a:3 | failed"},
		{poolwrite.Terminal, "admin (a:0", wordNone, "queue: admin:1 a:0 | failed"},
		{poolwrite.Written, "admin (a:1", wordNone, "queue: | Updated: a | done"},
		{poolwrite.Unchanged, "admin (a:1", WordRetrying, "queue: | Updated: admin a | done"},
		{poolwrite.Stale, "admin (a:1", wordNone, "queue:"},
		{poolwrite.Retriable, "(admin a:0", wordNone, "queue: admin:0 a:1 | Retrying: a"},
		{poolwrite.Terminal, "(admin a:0", wordNone, "queue: admin:0 | Failed: a"},
		{poolwrite.Written, "(admin a:0", wordNone, "queue: | Updated: a | done"},
		{poolwrite.Retriable, "-:0", wordNone, "queue: -:1"},
		{poolwrite.Written, "-:0", wordNone, "queue:"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %s", tt.outcome, tt.group), func(t *testing.T) {
			last := map[ServiceName]Word{}
			var ops []Operation
			for field := range strings.FieldsSeq(tt.group) {
				op := Operation{ChangedAt: time.Now()}
				field, op.Carried = strings.CutPrefix(field, "(")
				name, retries, _ := strings.Cut(field, ":")
				op.Admin = name == "admin"
				op.Service.Name = strings.Trim(name, "-")
				_, _ = fmt.Sscan(retries, &op.RetryCount)
				ops = append(ops, op)
				last[op.Service] = tt.last
			}
			v := Settle(tt.outcome, "", time.Time{}, ops, maxRetries, Past{Told: last})
			if got := spellVerdict(v); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func spellVerdict(v Verdict) string {
	out := "queue:"
	for _, op := range v.Requeue {
		name := op.Service.Name
		if name == "" {
			name = "-"
		}
		if op.Carried {
			name = "still carried " + name
		}
		out += fmt.Sprintf(" %s:%d", name, op.RetryCount+op.Tries)
	}
	for _, w := range []Word{WordUpdated, WordRetrying, WordFailed} {
		if len(v.Told[w]) > 0 {
			out += " | " + string(w) + ":"
			for _, s := range v.Told[w] {
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
	v := Settle(poolwrite.Retriable, "", until, []Operation{{}}, 3, Past{})
	if !v.Requeue[0].NextEligibleAt.Equal(until) {
		t.Errorf("parked until %s, want %s", v.Requeue[0].NextEligibleAt, until)
	}
	// The next failure without Retry-After is no longer parked.
	if v = Settle(poolwrite.Retriable, "", time.Time{}, v.Requeue, 3, Past{}); !v.Requeue[0].NextEligibleAt.IsZero() {
		t.Errorf("still parked until %s", v.Requeue[0].NextEligibleAt)
	}
}

func TestEveryOutcomeIsSettled(t *testing.T) {
	for _, o := range []poolwrite.Outcome{poolwrite.Written, poolwrite.Unchanged, poolwrite.Stale, poolwrite.Retriable, poolwrite.Terminal, poolwrite.Refused, poolwrite.Postponed, poolwrite.Shutdown} {
		if _, ok := settlement[o]; !ok {
			t.Errorf("outcome %s is not in the table", o)
		}
	}
}

// A check gives up nothing while a change is retried; alone it does.
func TestALookGivesUpNothingThatIsTriedAgain(t *testing.T) {
	web := ServiceName{Name: "web"}
	change := Operation{Service: web, ChangedAt: time.Now(), RetryCount: 1}
	for retryCount, want := range map[int]Word{1: WordRetrying, 3: WordFailed} {
		change.RetryCount = retryCount
		v := Settle(poolwrite.Retriable, "", time.Time{}, []Operation{change, {Service: web}}, 3, Past{GaveUp: true})
		if len(v.Told) != 1 || len(v.Told[want]) != 1 {
			t.Errorf("with %d of 3 retries used: told %v, want %s alone", retryCount, v.Told, want)
		}
	}
}

// The first check of a process that only writes admin states is not reported as a pool update.
// Changes of members are, and so is the end of a reported failure.
func TestAfterARestartAdminStatesAreNoWordOfThePool(t *testing.T) {
	for _, tt := range []struct {
		about  string
		op     Operation
		states bool
		last   Word
		want   Word
	}{
		{"admin states alone", Operation{}, true, wordNone, wordNone},
		{"members, too", Operation{}, false, wordNone, WordUpdated},
		{"after a failure", Operation{}, true, WordFailed, WordUpdated},
		{"after an attempt that failed", Operation{}, true, WordRetrying, WordUpdated},
		{"a change is known", Operation{ChangedAt: time.Now()}, true, wordNone, WordUpdated},
		{"a look for drift", Operation{Drift: true}, true, wordNone, WordUpdated},
	} {
		tt.op.Service = ServiceName{"shop", "web"}
		v := Settle(poolwrite.Written, "", time.Time{}, []Operation{tt.op}, 3, Past{States: tt.states, Told: map[ServiceName]Word{tt.op.Service: tt.last}})
		if told := len(v.Told[tt.want]) == 1; told != (tt.want != wordNone) || tt.want == wordNone && len(v.Told) > 0 {
			t.Errorf("%s: told %v, want %q", tt.about, v.Told, tt.want)
		}
	}
}
