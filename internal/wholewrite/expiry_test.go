// SPDX-License-Identifier: Apache-2.0

package wholewrite

import (
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
)

// A verdict that is confirmed every hour is persisted for the next process.
func TestAVerdictInDailyUseStaysOnRecord(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var memory, kept Record
	var now time.Time
	for hour := range 31 * 24 {
		now = start.Add(time.Duration(hour) * time.Hour)
		var fresh bool
		if memory, fresh = memory.UpdateResult(Addresses, behaviour.Accepted, "v", now); fresh {
			kept = memory
		}
	}
	if d := (State{BatchSetting: Auto, Version: "v", Record: kept}).DecideChange(Addresses, now, ""); d.Permission != Allowed {
		t.Errorf("on record since %s: %+v", kept.Addresses.At, d)
	}
}

// What a process saw Azure ignore long ago is tried again.
func TestWhatWasIgnoredLongAgoIsAskedAgain(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]Permission{ResultTTL / 2: Denied, 2 * ResultTTL: Once} {
		was := now.Add(-age)
		k := State{
			BatchSetting: Auto, Version: "v", Observed: behaviour.Behavior{UpdateAddresses: behaviour.Ignored},
			Record: Record{Version: "v", Addresses: Result{Answer: behaviour.Ignored, At: was, Attempts: 1, LastAttempt: was}},
		}
		if d := k.DecideChange(Addresses, now, ""); d.Permission != want {
			t.Errorf("%s later: %+v, want %v", age, d, want)
		}
	}
}
