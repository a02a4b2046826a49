// SPDX-License-Identifier: Apache-2.0

package azure

import "testing"

func TestWeigh(t *testing.T) {
	for text, want := range map[string]jsonCost{
		``:                       {},
		`{}`:                     {Weight: 4, depth: 1, copyBytes: 2},
		`"{[,:"`:                 {},
		`"\"{"`:                  {},
		`{"a":[1,2]}`:            {Weight: 10, depth: 2, copyBytes: 16},
		`[{"a":{}},{"bcd":"}"}]`: {Weight: 19, depth: 3, copyBytes: 33},
		`]}`:                     {},
		`{"a`:                    {Weight: 4, depth: 1},
		`"\`:                     {},
	} {
		if got := measureJSON([]byte(text)); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}

// FuzzWeigh checks the bounds of the result for any text.
func FuzzWeigh(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"\\\""}]}`, `]][[`, `"\u0000`, "\"\\"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		l := measureJSON(text)
		if l.depth < 0 || l.depth > maxDepth+1 || l.Weight < 4*l.depth || l.Weight > 4*len(text) || l.copyBytes > len(text)*(maxDepth+1) {
			t.Errorf("%+v of %d bytes", l, len(text))
		}
	})
}
