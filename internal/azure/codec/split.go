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
	size := len(text)
	for _, c := range w.ranges {
		size += len("[]") - (c.to - c.from)
	}
	rest = make(json.RawMessage, 0, size)
	from := 0
	for _, c := range w.ranges {
		if pools, err = splitList(text[c.from:c.to]); err != nil { // the last duplicate key counts, as in encoding/json
			return nil, nil, err
		}
		rest = append(append(rest, text[from:c.from]...), "[]"...)
		from = c.to
	}
	return append(rest, text[from:]...), pools, nil
}

// splitList copies the items of an array.
func splitList(text []byte) ([]json.RawMessage, error) {
	pools := []json.RawMessage{}
	ok := scanItems(text, func(item []byte) { pools = append(pools, slices.Clone(item)) })
	if !ok {
		return nil, json.Unmarshal(text, &pools)
	}
	return pools, nil
}

// scanItems calls item with each item of an array.
func scanItems(text []byte, item func(text []byte)) bool {
	if len(text) == 0 || text[0] != '[' {
		return false
	}
	at := skipSpace(text, 1)
	if at+1 == len(text) && text[at] == ']' {
		return true
	}
	for {
		end, ok := skipValue(text, at)
		if !ok {
			return false
		}
		item(text[at:end])
		if at = skipSpace(text, end); at >= len(text) || text[at] != ',' {
			return at+1 == len(text) && text[at] == ']'
		}
		at = skipSpace(text, at+1)
	}
}

type textRange struct{ from, to int }

// poolScanner finds pools without validating JSON. Methods take the start of a value and return its end,
// or false.
type poolScanner struct {
	text   []byte
	ranges []textRange
}

func (p *poolScanner) scanRoot(at int) (int, bool) {
	if at < len(p.text) && p.text[at] != '{' {
		return skipValue(p.text, at)
	}
	return scanMembers(p.text, at, func(key []byte, at int) (int, bool) {
		if string(key) == `"properties"` {
			return p.scanProperties(at)
		}
		return skipValue(p.text, at)
	})
}

func (p *poolScanner) scanProperties(at int) (int, bool) {
	if at < len(p.text) && p.text[at] != '{' {
		return skipValue(p.text, at)
	}
	return scanMembers(p.text, at, func(key []byte, from int) (int, bool) {
		to, ok := skipValue(p.text, from)
		if ok && string(key) == `"backendAddressPools"` && p.text[from] == '[' {
			p.ranges = append(p.ranges, textRange{from, to})
		}
		return to, ok
	})
}

// scanMembers calls value with the quoted key and the start of the value of each member of an object.
func scanMembers(text []byte, at int, value func(key []byte, at int) (int, bool)) (int, bool) {
	for {
		if at = skipSpace(text, at+1); at < len(text) && text[at] == '}' {
			return at + 1, true
		}
		end, ok := skipValue(text, at)
		colon := skipSpace(text, end)
		if !ok || colon >= len(text) || text[colon] != ':' {
			return at, false
		}
		at, ok = value(text[at:end], skipSpace(text, colon+1))
		if at = skipSpace(text, at); !ok || at >= len(text) {
			return at, false
		}
		if text[at] == '}' {
			return at + 1, true
		}
		if text[at] != ',' {
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
			if at, ok = skipString(text, at); !ok {
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

// skipString returns the closing quote.
func skipString(text []byte, at int) (end int, ok bool) {
	for from := at + 1; ; {
		n := bytes.IndexByte(text[from:], '"')
		if n < 0 {
			return len(text), false
		}
		end = from + n
		escape := end
		for escape > from && text[escape-1] == '\\' {
			escape--
		}
		if (end-escape)%2 == 0 {
			return end, true
		}
		from = end + 1
	}
}
