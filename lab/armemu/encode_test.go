// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// An answer is the text of encoding/json.
func TestEncodeJSON(t *testing.T) {
	var value func(t *rapid.T, depth int) any
	text := rapid.OneOf(rapid.SampledFrom([]string{"name", `"\`, "<&>", "\u2028", "\xff", "\n", ""}), rapid.String())
	value = func(t *rapid.T, depth int) any {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		if depth == 0 {
			kind = 2 + kind%6
		}
		switch kind {
		case 0:
			o := fields{}
			for range rapid.IntRange(0, 4).Draw(t, "members") {
				o[text.Draw(t, "key")] = value(t, depth-1)
			}
			return o
		case 1:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				list = append(list, value(t, depth-1))
			}
			return list
		case 2:
			return rapid.SampledFrom([]any{nil, true, false, json.Number("1.50"), 7, fields(nil), []any(nil), []string{"<"}, struct{ A string }{"<"}}).Draw(t, "other")
		}
		return text.Draw(t, "text")
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(t, 4)
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got := encodeJSON(v); string(got)+"\n" != want.String() {
			t.Fatalf("got %s, want %s", got, want.String())
		}
	})
}
