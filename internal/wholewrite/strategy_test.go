// SPDX-License-Identifier: Apache-2.0

package wholewrite

import (
	"encoding/json"
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
)

func TestStrategies(t *testing.T) {
	for text, want := range map[string]struct{ whole, overlapping Setting }{
		`"auto"`: {Auto, Auto}, `"Serial"`: {Never, Never}, `"pipelined"`: {Never, Always}, `"WHOLE"`: {Always, Never},
	} {
		var s Strategy
		if err := json.Unmarshal([]byte(text), &s); err != nil || !s.IsValid() {
			t.Fatalf("%s is %q, %v", text, s, err)
		}
		if s.BatchSetting() != want.whole || s.OverlapSetting() != want.overlapping {
			t.Errorf("%s: whole %q, overlapping %q, want %v", text, s.BatchSetting(), s.OverlapSetting(), want)
		}
	}
	for _, text := range []string{`"some"`, `true`, `1`} {
		var s Strategy
		if err := json.Unmarshal([]byte(text), &s); err == nil && s.IsValid() {
			t.Errorf("%s is a strategy", text)
		}
	}
}

// Overlapping writes have a verdict of their own: from observation, configuration and record, each
// as far as the setting allows, and none lasts forever.
func TestWhetherWritesMayOverlap(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	record := func(a behaviour.Result, at time.Time) Record {
		return Record{Version: "v1", Overlapping: Result{Answer: a, At: at}}
	}
	overlap := func(a behaviour.Result) behaviour.Behavior { return behaviour.Behavior{Overlap: a} }
	for _, tt := range []struct {
		name    string
		known   State
		want    Permission
		verdict string
	}{
		{"no setting", State{Observed: overlap(behaviour.Supersede)}, Denied, "off"},
		{"nothing is known", State{OverlapSetting: Auto}, Once, "unknown"},
		{"it was seen", State{OverlapSetting: Auto, Observed: overlap(behaviour.Supersede)}, Allowed, "supersede"},
		{"it is refused", State{OverlapSetting: Auto, Observed: overlap(behaviour.Lock)}, Denied, "lock-429"},
		{"it is set, and refused", State{OverlapSetting: Always, Observed: overlap(behaviour.Conflict)}, Denied, "conflict-409"},
		{"it is set", State{OverlapSetting: Always}, Allowed, "on"},
		{"it is set, though pools written whole are ignored", State{OverlapSetting: Always, Observed: behaviour.Behavior{UpdateAddresses: behaviour.Ignored}}, Allowed, "on"},
		{"a file says so", State{OverlapSetting: Auto, FromFile: overlap(behaviour.Supersede)}, Allowed, "supersede"},
		{"a file says mixed", State{OverlapSetting: Auto, FromFile: overlap(behaviour.Mixed)}, Denied, "mixed"},
		{"on record", State{OverlapSetting: Auto, Version: "v1", Record: record(behaviour.Supersede, now.Add(-29*24*time.Hour))}, Allowed, "supersede"},
		{"on record, taken back", State{OverlapSetting: Auto, Version: "v1", Record: record(behaviour.SupersedeDiscard, now)}, Denied, "supersede-discard"},
		{"on record, long ago", State{OverlapSetting: Auto, Version: "v1", Record: record(behaviour.Supersede, now.Add(-31*24*time.Hour))}, Once, "unknown"},
		{"on record, by another version", State{OverlapSetting: Auto, Version: "v2", Record: record(behaviour.Supersede, now)}, Once, "unknown"},
	} {
		if got := tt.known.DecideChange(Overlap, now, "").Permission; got != tt.want {
			t.Errorf("%s: leave %d, want %d", tt.name, got, tt.want)
		}
		if got := tt.known.StateLabel(Overlap, now); got != tt.verdict {
			t.Errorf("%s: verdict %q, want %q", tt.name, got, tt.verdict)
		}
	}
}
