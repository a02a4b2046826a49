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
		if memory, fresh = memory.Saw(Addresses, behaviour.Taken, "v", now); fresh {
			kept = memory
		}
	}
	if d := (Known{Setting: Auto, Version: "v", Record: kept}).May(Addresses, now, ""); d.Leave != Yes {
		t.Errorf("on record since %s: %+v", kept.Addresses.At, d)
	}
}

// What a process saw Azure ignore long ago is tried again.
func TestWhatWasIgnoredLongAgoIsAskedAgain(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	for age, want := range map[time.Duration]Leave{Lifetime / 2: No, 2 * Lifetime: Try} {
		was := now.Add(-age)
		k := Known{
			Setting: Auto, Version: "v", Seen: behaviour.Behaviour{WholeWriteAddresses: behaviour.Ignored},
			Record: Record{Version: "v", Addresses: Verdict{Answer: behaviour.Ignored, At: was, Trials: 1, TriedAt: was}},
		}
		if d := k.May(Addresses, now, ""); d.Leave != want {
			t.Errorf("%s later: %+v, want %v", age, d, want)
		}
	}
}
