// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	"weir.dev/weir/internal/pool/diff"
)

// A change starts a pool's pace; a check does not, whatever it finds.
func TestALookBeginsNoPace(t *testing.T) {
	begun := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		about string
		op    Operation
		paces bool
	}{
		{"a look for drift", Operation{Resync: true}, false},
		{"the first look of a process", Operation{}, false},
		{"the first look at what is on record otherwise", Operation{OutOfSync: true}, true},
		{"a change", Operation{ChangedAt: begun}, true},
		{"a change that is tried again", Operation{ChangedAt: begun, RetryCount: 1}, true},
		{"admin states", Operation{Admin: true, ChangedAt: begun}, false},
	} {
		cause := CauseOf([]Operation{tt.op}, true)
		h := History{}.AfterAttempt(diff.Unchanged, nil, cause, begun, begun, time.Minute)
		if got := !h.LastChange.IsZero(); got != tt.paces {
			t.Errorf("%s begins a pace: %t", tt.about, got)
		}
	}
}
