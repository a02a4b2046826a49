// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// memberText is a value as read.
type memberText []byte

// Marshal returns the text of a body.
func Marshal(body any) ([]byte, error) {
	if o, ok := body.(*jsonObject); ok {
		return o.MarshalJSON()
	}
	return json.Marshal(body)
}

// MarshalJSON implements json.Marshaler. The text is that of encoding/json for a map: sorted by name and
// without spaces.
func (o *jsonObject) MarshalJSON() ([]byte, error) {
	size := 0
	if o.parser != nil {
		size = o.parser.size
	}
	w := objectWriter{text: make([]byte, 0, size)}
	w.addObject(o)
	return w.text, w.err
}

type objectWriter struct {
	text []byte
	err  error
	// open has the written members of the objects in progress, innermost last.
	open    []writtenMember
	scratch []byte
}

// writtenMember is a member in the text, with the comma that follows it.
type writtenMember struct{ from, keyEnd, to int }

func (w *objectWriter) addObject(o *jsonObject) {
	if o.other != nil {
		w.addText(o.other, 0)
		return
	}
	first, start := len(w.open), w.startObject()
	slices.SortStableFunc(o.members, func(a, b jsonMember) int { return strings.Compare(a.key, b.key) })
	for i := range o.members {
		m := &o.members[i]
		from := len(w.text)
		w.addString(m.key)
		keyEnd := len(w.text)
		w.text = append(w.text, ':')
		if m.text != nil && m.value == nil {
			w.addText(m.text, 0)
		} else {
			w.addValue(m.value)
		}
		w.endMember(from, keyEnd)
	}
	w.endObject(first, start)
}

func (w *objectWriter) startObject() int {
	w.text = append(w.text, '{')
	return len(w.text)
}

func (w *objectWriter) endMember(from, keyEnd int) {
	w.text = append(w.text, ',')
	w.open = append(w.open, writtenMember{from, keyEnd, len(w.text)})
}

// endObject sorts the members; the last of equal names counts, as in encoding/json.
func (w *objectWriter) endObject(first, start int) {
	members := w.open[first:]
	for i := 1; i < len(members); i++ {
		if w.compareNames(w.text, members[i-1], members[i]) >= 0 {
			w.sortMembers(members, start)
			break
		}
	}
	if w.open = w.open[:first]; len(w.text) > start {
		w.text[len(w.text)-1] = '}'
		return
	}
	w.text = append(w.text, '}')
}

func (w *objectWriter) sortMembers(members []writtenMember, start int) {
	w.scratch = append(w.scratch[:0], w.text[start:]...)
	written := w.text[:len(w.text):len(w.text)]
	slices.SortStableFunc(members, func(a, b writtenMember) int { return w.compareNames(written, a, b) })
	kept := members[:0]
	for i, m := range members {
		if i+1 == len(members) || w.compareNames(written, m, members[i+1]) != 0 {
			kept = append(kept, m)
		}
	}
	w.text = w.text[:start]
	for _, m := range kept {
		w.text = append(w.text, w.scratch[m.from-start:m.to-start]...)
	}
}

func (w *objectWriter) compareNames(text []byte, a, b writtenMember) int {
	x, y := text[a.from:a.keyEnd], text[b.from:b.keyEnd]
	if bytes.IndexByte(x, '\\') < 0 && bytes.IndexByte(y, '\\') < 0 {
		return bytes.Compare(x[1:len(x)-1], y[1:len(y)-1])
	}
	return strings.Compare(stringOf(x), stringOf(y))
}

func (w *objectWriter) addValue(value any) {
	switch value := value.(type) {
	case nil:
		w.text = append(w.text, "null"...)
	case *jsonObject:
		w.addObject(value)
	case []*jsonObject:
		w.text = append(w.text, '[')
		for i, item := range value {
			if i > 0 {
				w.text = append(w.text, ',')
			}
			w.addObject(item)
		}
		w.text = append(w.text, ']')
	case memberText:
		w.addText(value, 0)
	case string:
		w.addString(value)
	case bool:
		w.text = strconv.AppendBool(w.text, value)
	case int32:
		w.text = strconv.AppendInt(w.text, int64(value), 10)
	default:
		w.addEncoded(value)
	}
}

func (w *objectWriter) addEncoded(value any) {
	text, err := json.Marshal(value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.text = append(w.text, text...)
}

func (w *objectWriter) addString(value string) {
	if !isPlain(value) {
		w.addEncoded(value)
		return
	}
	w.text = append(append(append(w.text, '"'), value...), '"')
}

// addText adds the value at a position and returns its end.
func (w *objectWriter) addText(text []byte, at int) int {
	end := at
	switch {
	case at >= len(text):
		return w.fail(text)
	case text[at] == '{':
		return w.addTextObject(text, at)
	case text[at] == '[':
		return w.addTextList(text, at)
	case text[at] == '"':
		return w.addTextString(text, at)
	}
	for end < len(text) && strings.IndexByte(",]} \n\r\t", text[end]) < 0 {
		end++
	}
	if end == at {
		return w.fail(text)
	}
	w.text = append(w.text, text[at:end]...)
	return end
}

// fail ends the writing.
func (w *objectWriter) fail(text []byte) int {
	if w.err == nil {
		w.err = errNoObject
	}
	return len(text)
}

func (w *objectWriter) addTextObject(text []byte, at int) int {
	first, start := len(w.open), w.startObject()
	end, ok := scanMembers(text, at, func(key []byte, value int) (int, bool) {
		from := len(w.text)
		w.addTextString(key, 0)
		keyEnd := len(w.text)
		w.text = append(w.text, ':')
		end := w.addText(text, value)
		w.endMember(from, keyEnd)
		return end, w.err == nil
	})
	if !ok {
		return w.fail(text)
	}
	w.endObject(first, start)
	return end
}

func (w *objectWriter) addTextList(text []byte, at int) int {
	w.text = append(w.text, '[')
	if at = skipSpace(text, at+1); at < len(text) && text[at] == ']' {
		w.text = append(w.text, ']')
		return at + 1
	}
	for {
		at = skipSpace(text, w.addText(text, at))
		if w.err != nil || at >= len(text) || text[at] != ',' && text[at] != ']' {
			return w.fail(text)
		}
		w.text = append(w.text, text[at])
		if text[at] == ']' {
			return at + 1
		}
		at = skipSpace(text, at+1)
	}
}

// addTextString adds a string with the escapes of encoding/json.
func (w *objectWriter) addTextString(text []byte, at int) int {
	end, ok := skipValue(text, at)
	if !ok || text[at] != '"' {
		return w.fail(text)
	}
	if isPlain(text[at+1 : end-1]) {
		w.text = append(w.text, text[at:end]...)
		return end
	}
	var value string
	if json.Unmarshal(text[at:end], &value) != nil {
		return w.fail(text)
	}
	w.addEncoded(value)
	return end
}

// isPlain reports whether encoding/json neither escapes nor replaces a character.
func isPlain[T ~string | ~[]byte](text T) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || plainExceptions[c] {
			return false
		}
	}
	return true
}

var plainExceptions = [256]bool{'"': true, '\\': true, '<': true, '>': true, '&': true}
