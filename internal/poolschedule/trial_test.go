// SPDX-License-Identifier: Apache-2.0

package poolschedule

import (
	"testing"
	"time"

	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// The conditions for a trial.
func TestUnrest(t *testing.T) {
	at := seconds(100)
	drains, returns := &Operation{Admin: true, Impact: Impact{Stopping: 1}}, &Operation{Admin: true, Impact: Impact{Starting: 1}}
	for _, tt := range []struct {
		about             string
		g                 Group
		addresses, states string
	}{
		{"a level pool", Group{}, "", ""},
		{"a change", Group{hasNew: true}, "", ""},
		{"a node leaves", Group{Admin: drains}, "nodes drain", "nodes drain"},
		{"a node returns", Group{Admin: returns}, "nodes return", ""},
		{"a retry", Group{Retry: true}, "a pool fails", "a pool fails"},
		{"admin states that failed", Group{Admin: &Operation{Admin: true, FailedAttempts: 1}}, "nodes return", "a pool fails"},
		{"given up, which can last for ever", Group{history: History{FinalError: "Terminal Poison"}}, "", ""},
		{"a change of a pool that is refused by itself", Group{Retry: true, history: History{ExcludedFromBatch: true}}, "", ""},
		{"admin states that fail time and again", Group{Admin: &Operation{Admin: true, FailedAttempts: maxFailures, Impact: Impact{Stopping: 1}}}, "", ""},
		{"no record, time and again", Group{history: History{DelayCount: maxFailures}}, "", ""},
		{"given up, and parked", Group{history: History{FinalError: "x", NotBefore: at.Add(time.Second)}}, "a pool waits for a Retry-After", "a pool waits for a Retry-After"},
		{"one that goes by itself, as of interfaces", Group{history: History{ExcludedFromBatch: true}}, "", ""},
		{"a change that is parked", Group{hasNew: true, ParkedUntil: at.Add(time.Second)}, "a pool waits for a Retry-After", "a pool waits for a Retry-After"},
		{"a pool that is", Group{history: History{NotBefore: at.Add(time.Second)}}, "a pool waits for a Retry-After", "a pool waits for a Retry-After"},
		{"one that was", Group{history: History{NotBefore: at}}, "", ""},
		{"a lost write", Group{history: History{Writes: poolwrite.Memory{PendingEtag: "1"}}}, "the fate of a write is not known", "the fate of a write is not known"},
		{"no record", Group{history: History{DelayCount: 1}}, "something of Weir's own is not ready", "something of Weir's own is not ready"},
	} {
		if a, s := tt.g.TrialBlockedReason(at, wholewrite.Addresses), tt.g.TrialBlockedReason(at, wholewrite.AdminStates); a != tt.addresses || s != tt.states {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.about, a, s, tt.addresses, tt.states)
		}
	}
}
