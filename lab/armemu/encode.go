// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
)

// encodeJSON returns the text of encoding/json without HTML escapes. Bodies, which are maps, are encoded
// without reflection.
func encodeJSON(v any) []byte {
	e := encoders.Get().(*jsonEncoder) //nolint:forcetypeassert // nothing else is in the pool
	defer encoders.Put(e)
	e.text.Reset()
	e.addValue(v)
	return slices.Clone(e.text.Bytes())
}

var encoders = sync.Pool{New: func() any { return &jsonEncoder{} }}

type jsonEncoder struct {
	text bytes.Buffer
	// keys has the sorted keys of the objects in progress, innermost last.
	keys []string
}

func (e *jsonEncoder) addValue(v any) {
	switch v := v.(type) {
	case fields:
		if v == nil {
			e.text.WriteString("null")
			return
		}
		e.addObject(v)
	case []any:
		if v == nil {
			e.text.WriteString("null")
			return
		}
		e.addList(v)
	case string:
		e.addString(v)
	case bool:
		if v {
			e.text.WriteString("true")
		} else {
			e.text.WriteString("false")
		}
	case nil:
		e.text.WriteString("null")
	default:
		e.addOther(v)
	}
}

func (e *jsonEncoder) addObject(o fields) {
	first := len(e.keys)
	for key := range o {
		e.keys = append(e.keys, key)
	}
	slices.Sort(e.keys[first:])
	last := len(e.keys)
	e.text.WriteByte('{')
	for i := first; i < last; i++ {
		if i > first {
			e.text.WriteByte(',')
		}
		e.addString(e.keys[i])
		e.text.WriteByte(':')
		e.addValue(o[e.keys[i]])
	}
	e.text.WriteByte('}')
	clear(e.keys[first:])
	e.keys = e.keys[:first]
}

func (e *jsonEncoder) addList(list []any) {
	e.text.WriteByte('[')
	for i, item := range list {
		if i > 0 {
			e.text.WriteByte(',')
		}
		e.addValue(item)
	}
	e.text.WriteByte(']')
}

func (e *jsonEncoder) addString(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			e.addOther(s)
			return
		}
	}
	e.text.WriteByte('"')
	e.text.WriteString(s)
	e.text.WriteByte('"')
}

func (e *jsonEncoder) addOther(v any) {
	enc := json.NewEncoder(&e.text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// All values come from a JSON decoder or this package's structs.
		panic("armemu: cannot encode an answer: " + err.Error())
	}
	e.text.Truncate(len(bytes.TrimRight(e.text.Bytes(), "\n")))
}
