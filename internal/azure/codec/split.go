// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"slices"
)

// splitPools separates the pools; the results do not share memory with text.
func splitPools(text []byte) (rest json.RawMessage, pools []json.RawMessage, err error) {
	w := poolScanner{text: text}
	end, ok := w.scanRoot(skipSpace(text, 0))
	if !ok || skipSpace(text, end) != len(text) {
		return slices.Clone(text), nil, nil // decoding reports the error
	}
	from := 0
	for _, c := range w.ranges {
		pools = nil // the last duplicate key counts, as in encoding/json
		if err := json.Unmarshal(text[c.from:c.to], &pools); err != nil {
			return nil, nil, err
		}
		rest = append(append(rest, text[from:c.from]...), "[]"...)
		from = c.to
	}
	return slices.Clip(append(rest, text[from:]...)), pools, nil
}

type textRange struct{ from, to int }

// poolScanner finds pools without validating JSON. Methods take the start of a value and return its end,
// or false.
type poolScanner struct {
	text   []byte
	ranges []textRange
}

func (w *poolScanner) scanRoot(at int) (int, bool) {
	return w.scanMembers(at, func(key string, at int) (int, bool) {
		if key == `"properties"` {
			return w.scanProperties(at)
		}
		return skipValue(w.text, at)
	})
}

func (w *poolScanner) scanProperties(at int) (int, bool) {
	return w.scanMembers(at, func(key string, from int) (int, bool) {
		to, ok := skipValue(w.text, from)
		if ok && key == `"backendAddressPools"` && w.text[from] == '[' {
			w.ranges = append(w.ranges, textRange{from, to})
		}
		return to, ok
	})
}

// scanMembers calls value for each member of an object, and skips other values.
func (w *poolScanner) scanMembers(at int, value func(key string, at int) (int, bool)) (int, bool) {
	if at >= len(w.text) || w.text[at] != '{' {
		return skipValue(w.text, at)
	}
	for {
		if at = skipSpace(w.text, at+1); at < len(w.text) && w.text[at] == '}' {
			return at + 1, true
		}
		end, ok := skipValue(w.text, at)
		colon := skipSpace(w.text, end)
		if !ok || colon >= len(w.text) || w.text[colon] != ':' {
			return at, false
		}
		at, ok = value(string(w.text[at:end]), skipSpace(w.text, colon+1))
		if at = skipSpace(w.text, at); !ok || at >= len(w.text) {
			return at, false
		}
		if w.text[at] == '}' {
			return at + 1, true
		}
		if w.text[at] != ',' {
			return at, false
		}
	}
}

func skipSpace(text []byte, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

func skipValue(text []byte, at int) (end int, ok bool) {
	depth := 0
	for ; at < len(text); at++ {
		switch text[at] {
		case '"':
			for at++; at < len(text) && text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			if at >= len(text) {
				return at, false
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth == 0 { // a number or a literal
				n := bytes.IndexAny(text[at:], ",]} \n\r\t")
				return at + n, n > 0
			}
			continue
		}
		if depth <= 0 {
			return at + 1, depth == 0
		}
	}
	return at, false
}
