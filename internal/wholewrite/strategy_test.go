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
		if err := json.Unmarshal([]byte(text), &s); err != nil || !s.Valid() {
			t.Fatalf("%s is %q, %v", text, s, err)
		}
		if s.OfWhole() != want.whole || s.OfOverlapping() != want.overlapping {
			t.Errorf("%s: whole %q, overlapping %q, want %v", text, s.OfWhole(), s.OfOverlapping(), want)
		}
	}
	for _, text := range []string{`"some"`, `true`, `1`} {
		var s Strategy
		if err := json.Unmarshal([]byte(text), &s); err == nil && s.Valid() {
			t.Errorf("%s is a strategy", text)
		}
	}
}

// Overlapping writes have a verdict of their own: from observation, configuration and record, each
// as far as the setting allows, and none lasts forever.
func TestWhetherWritesMayOverlap(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	record := func(a behaviour.Answer, at time.Time) Record {
		return Record{Version: "v1", Overlapping: Verdict{Answer: a, At: at}}
	}
	overlap := func(a behaviour.Answer) behaviour.Behaviour { return behaviour.Behaviour{Overlap: a} }
	for _, tt := range []struct {
		name    string
		known   Known
		want    Leave
		verdict string
	}{
		{"no setting", Known{Seen: overlap(behaviour.Supersede)}, No, "off"},
		{"nothing is known", Known{Pipelined: Auto}, Try, "unknown"},
		{"it was seen", Known{Pipelined: Auto, Seen: overlap(behaviour.Supersede)}, Yes, "supersede"},
		{"it is refused", Known{Pipelined: Auto, Seen: overlap(behaviour.Lock)}, No, "lock-429"},
		{"it is set, and refused", Known{Pipelined: Always, Seen: overlap(behaviour.Conflict)}, No, "conflict-409"},
		{"it is set", Known{Pipelined: Always}, Yes, "on"},
		{"it is set, though pools written whole are ignored", Known{Pipelined: Always, Seen: behaviour.Behaviour{WholeWriteAddresses: behaviour.Ignored}}, Yes, "on"},
		{"a file says so", Known{Pipelined: Auto, Probed: overlap(behaviour.Supersede)}, Yes, "supersede"},
		{"a file says mixed", Known{Pipelined: Auto, Probed: overlap(behaviour.Mixed)}, No, "mixed"},
		{"on record", Known{Pipelined: Auto, Version: "v1", Record: record(behaviour.Supersede, now.Add(-29*24*time.Hour))}, Yes, "supersede"},
		{"on record, taken back", Known{Pipelined: Auto, Version: "v1", Record: record(behaviour.SupersedeDiscard, now)}, No, "supersede-discard"},
		{"on record, long ago", Known{Pipelined: Auto, Version: "v1", Record: record(behaviour.Supersede, now.Add(-31*24*time.Hour))}, Try, "unknown"},
		{"on record, by another version", Known{Pipelined: Auto, Version: "v2", Record: record(behaviour.Supersede, now)}, Try, "unknown"},
	} {
		if got := tt.known.May(Overlapping, now, "").Leave; got != tt.want {
			t.Errorf("%s: leave %d, want %d", tt.name, got, tt.want)
		}
		if got := tt.known.Verdict(Overlapping, now); got != tt.verdict {
			t.Errorf("%s: verdict %q, want %q", tt.name, got, tt.verdict)
		}
	}
}
