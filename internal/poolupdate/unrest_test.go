// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"testing"
	"time"

	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// When it is calm.
func TestUnrest(t *testing.T) {
	at := seconds(100)
	drains, returns := &Operation{Admin: true, Stake: Stake{Leaves: 1}}, &Operation{Admin: true, Stake: Stake{Returns: 1}}
	for _, tt := range []struct {
		about             string
		g                 group
		addresses, states string
	}{
		{"a level pool", group{}, "", ""},
		{"a change", group{fresh: true}, "", ""},
		{"a node leaves", group{admin: drains}, "nodes drain", "nodes drain"},
		{"a node returns", group{admin: returns}, "nodes return", ""},
		{"a retry", group{retry: true}, "a pool fails", "a pool fails"},
		{"admin states that failed", group{admin: &Operation{Admin: true, tries: 1}}, "nodes return", "a pool fails"},
		{"given up, which can last for ever", group{history: history{gaveUp: "Terminal Poison"}}, "", ""},
		{"a change of a pool that is refused by itself", group{retry: true, history: history{apart: true}}, "", ""},
		{"admin states that fail time and again", group{admin: &Operation{Admin: true, tries: failsForGood, Stake: Stake{Leaves: 1}}}, "", ""},
		{"no record, time and again", group{history: history{postponed: failsForGood}}, "", ""},
		{"given up, and parked", group{history: history{gaveUp: "x", notBefore: at.Add(time.Second)}}, "a pool waits for a Retry-After", "a pool waits for a Retry-After"},
		{"one that goes by itself, as of interfaces", group{history: history{apart: true}}, "", ""},
		{"a change that is parked", group{fresh: true, parkedUntil: at.Add(time.Second)}, "a pool waits for a Retry-After", "a pool waits for a Retry-After"},
		{"a pool that is", group{history: history{notBefore: at.Add(time.Second)}}, "a pool waits for a Retry-After", "a pool waits for a Retry-After"},
		{"one that was", group{history: history{notBefore: at}}, "", ""},
		{"a lost write", group{history: history{writes: poolwrite.Memory{Lost: "1"}}}, "the fate of a write is not known", "the fate of a write is not known"},
		{"no record", group{history: history{postponed: 1}}, "something of Weir's own is not ready", "something of Weir's own is not ready"},
	} {
		if a, s := tt.g.unrest(at, wholewrite.Addresses), tt.g.unrest(at, wholewrite.AdminStates); a != tt.addresses || s != tt.states {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.about, a, s, tt.addresses, tt.states)
		}
	}
}
