// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/poolwrite"
)

// TestSettle writes a group as "service:retries", with admin for a change of admin states and
// ( before what is only taken along, and what becomes of it as the queue afterwards and what
// is told.
func TestSettle(t *testing.T) {
	const maxRetries = 3
	tests := []struct {
		outcome poolwrite.Outcome
		group   string
		last    word
		want    string
	}{
		{poolwrite.Written, "a:0 a:2 b:1", wordNone, "queue: | Updated: a b"},
		{poolwrite.Unchanged, "a:0", wordNone, "queue:"},
		{poolwrite.Unchanged, "a:1", wordRetrying, "queue: | Updated: a"},
		{poolwrite.Unchanged, "a:0", wordFailed, "queue: | Updated: a"},
		{poolwrite.Unchanged, "a:0", wordUpdated, "queue:"},
		{poolwrite.Stale, "a:0 b:3", wordNone, "queue:"},
		{poolwrite.Refused, "a:0", wordNone, "queue:"},
		{poolwrite.Shutdown, "a:0 b:3", wordNone, "queue:"},
		{poolwrite.Retriable, "a:0", wordNone, "queue: a:1 | Retrying: a"},
		{poolwrite.Retriable, "a:0 a:1 b:2", wordNone, "queue: a:1 a:2 b:3 | Retrying: a b"},
		{poolwrite.Retriable, "a:3", wordNone, "queue: | Failed: a"},
		{poolwrite.Retriable, "a:3 b:0", wordNone, "queue: b:1 | Retrying: b | Failed: a"},
		{poolwrite.Terminal, "a:0 b:3", wordNone, "queue: | Failed: a b"},
		{poolwrite.Postponed, "a:0 b:3", wordNone, "queue: a:0 b:3"},
		{poolwrite.Written, "admin a:0", wordNone, "queue: | Updated: a | done"},
		{poolwrite.Written, "admin", wordRetrying, "queue: | Updated: admin | done"},
		{poolwrite.Unchanged, "admin", wordNone, "queue: | done"},
		{poolwrite.Unchanged, "admin", wordFailed, "queue: | Updated: admin | done"},
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
		{poolwrite.Unchanged, "admin (a:1", wordRetrying, "queue: | Updated: admin a | done"},
		{poolwrite.Stale, "admin (a:1", wordNone, "queue:"},
		{poolwrite.Retriable, "(admin a:0", wordNone, "queue: admin:0 a:1 | Retrying: a"},
		{poolwrite.Terminal, "(admin a:0", wordNone, "queue: admin:0 | Failed: a"},
		{poolwrite.Written, "(admin a:0", wordNone, "queue: | Updated: a | done"},
		{poolwrite.Retriable, "-:0", wordNone, "queue: -:1"},
		{poolwrite.Written, "-:0", wordNone, "queue:"},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%s %s", tt.outcome, tt.group), func(t *testing.T) {
			last := map[ServiceName]word{}
			var ops []Operation
			for field := range strings.FieldsSeq(tt.group) {
				op := Operation{ChangedAt: time.Now()}
				field, op.carried = strings.CutPrefix(field, "(")
				name, retries, _ := strings.Cut(field, ":")
				op.Admin = name == "admin"
				op.Service.Name = strings.Trim(name, "-")
				_, _ = fmt.Sscan(retries, &op.retryCount)
				ops = append(ops, op)
				last[op.Service] = tt.last
			}
			v := settle(tt.outcome, false, time.Time{}, ops, maxRetries, past{told: last})
			if got := spellVerdict(v); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func spellVerdict(v verdict) string {
	out := "queue:"
	for _, op := range v.requeue {
		name := op.Service.Name
		if name == "" {
			name = "-"
		}
		if op.carried {
			name = "still carried " + name
		}
		out += fmt.Sprintf(" %s:%d", name, op.retryCount+op.tries)
	}
	for _, w := range []word{wordUpdated, wordRetrying, wordFailed} {
		if len(v.told[w]) > 0 {
			out += " | " + string(w) + ":"
			for _, s := range v.told[w] {
				out += " " + s.Name
			}
		}
	}
	if v.adminFailed {
		out += " | failed"
	}
	if v.adminDone {
		out += " | done"
	}
	return out
}

func TestSettleParksByRetryAfter(t *testing.T) {
	until := seconds(90)
	v := settle(poolwrite.Retriable, false, until, []Operation{{}}, 3, past{})
	if !v.requeue[0].nextEligibleAt.Equal(until) {
		t.Errorf("parked until %s, want %s", v.requeue[0].nextEligibleAt, until)
	}
	// The next failure without a Retry-After is no longer parked.
	if v = settle(poolwrite.Retriable, false, time.Time{}, v.requeue, 3, past{}); !v.requeue[0].nextEligibleAt.IsZero() {
		t.Errorf("still parked until %s", v.requeue[0].nextEligibleAt)
	}
}

func TestEveryOutcomeIsSettled(t *testing.T) {
	for _, o := range []poolwrite.Outcome{poolwrite.Written, poolwrite.Unchanged, poolwrite.Stale, poolwrite.Retriable, poolwrite.Terminal, poolwrite.Refused, poolwrite.Postponed, poolwrite.Shutdown} {
		if _, ok := settlement[o]; !ok {
			t.Errorf("outcome %s is not in the table", o)
		}
	}
}

// A look beside a change that is tried again gives up nothing; alone it does.
func TestALookGivesUpNothingThatIsTriedAgain(t *testing.T) {
	web := ServiceName{Name: "web"}
	change := Operation{Service: web, ChangedAt: time.Now(), retryCount: 1}
	for retryCount, want := range map[int]word{1: wordRetrying, 3: wordFailed} {
		change.retryCount = retryCount
		v := settle(poolwrite.Retriable, false, time.Time{}, []Operation{change, {Service: web}}, 3, past{gaveUp: true})
		if len(v.told) != 1 || len(v.told[want]) != 1 {
			t.Errorf("with %d of 3 retries used: told %v, want %s alone", retryCount, v.told, want)
		}
	}
}

// A process that begins looks at a pool, and has only admin states to write: other events speak of
// these. What changes the members is told, and so is the end of a failure that was told.
func TestAfterARestartAdminStatesAreNoWordOfThePool(t *testing.T) {
	for _, tt := range []struct {
		about  string
		op     Operation
		states bool
		last   word
		want   word
	}{
		{"admin states alone", Operation{}, true, wordNone, wordNone},
		{"members, too", Operation{}, false, wordNone, wordUpdated},
		{"after a failure", Operation{}, true, wordFailed, wordUpdated},
		{"after an attempt that failed", Operation{}, true, wordRetrying, wordUpdated},
		{"a change is known", Operation{ChangedAt: time.Now()}, true, wordNone, wordUpdated},
		{"a look for drift", Operation{drift: true}, true, wordNone, wordUpdated},
	} {
		tt.op.Service = ServiceName{"shop", "web"}
		v := settle(poolwrite.Written, false, time.Time{}, []Operation{tt.op}, 3, past{states: tt.states, told: map[ServiceName]word{tt.op.Service: tt.last}})
		if told := len(v.told[tt.want]) == 1; told != (tt.want != wordNone) || tt.want == wordNone && len(v.told) > 0 {
			t.Errorf("%s: told %v, want %q", tt.about, v.told, tt.want)
		}
	}
}
