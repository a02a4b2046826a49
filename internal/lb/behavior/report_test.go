// SPDX-License-Identifier: Apache-2.0

package behavior_test

import (
	"encoding/json"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb/behavior"
)

func TestParseReport(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{`{"behaviour": {"overlap": "mixed"}}`, ""},
		{`{"behaviour": {}, "cloud": "AzurePublicCloud", "when": "2026-11-22T09:00:00Z"}`, ""},
		{`{}`, `the key "behaviour" is missing`},
		{`{"overlap": "mixed"}`, `the key "behaviour" is missing`},
		{`{"behaviour": {"overlap": "maybe"}}`, `behaviour: overlap: "maybe" is invalid: use one of [supersede `},
		{`{"behaviour": {"colour": "red"}}`, `behaviour: no question of Azure's behaviour is named "colour"`},
		{`{"behaviour": {}, "colour": "red"}`, `the key "colour" is unknown: use behaviour, cloud, `},
		{`{"behaviour": {}, "latencies": [{"colour": 1}]}`, `latencies: json: unknown field "colour"`},
		{`{"behaviour": {}, "requests": "many"}`, `requests: json: `},
		{`{"behaviour": {}} {}`, `more follows after the JSON object`},
		{`[]`, `want a JSON object, as weirlab probe-azure --out writes it: `},
		{``, `want a JSON object, as weirlab probe-azure --out writes it: `},
		{strings.Repeat(" ", behavior.MaxReport+1), `larger than 1048576 bytes`},
	} {
		_, err := behavior.ParseReport([]byte(row.text))
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.HasPrefix(err.Error(), row.want)) {
			t.Errorf("%.60s: got %v, want %s", row.text, err, row.want)
		}
	}
}

// A parsed report is valid and is encoded as it was read.
func FuzzParseReport(f *testing.F) {
	f.Add([]byte(`{"behaviour": {"overlap": "mixed", "poolIfMatch": "ignored"}, "properties": [{"name": "overlap", "events": [{"status": 409}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		report, err := behavior.ParseReport(text)
		if err != nil {
			return
		}
		for i, q := range behavior.AllProperties() {
			if _, err := report.Behaviour.WithResult(q.Name, report.Behaviour.GetResult(i)); err != nil {
				t.Error(err)
			}
		}
		raw, err := json.Marshal(report)
		if err != nil {
			t.Skip() // a time that JSON cannot encode
		}
		second, err := behavior.ParseReport(raw)
		if err != nil || second.Behaviour != report.Behaviour {
			t.Errorf("%v: %s", err, raw)
		}
	})
}
