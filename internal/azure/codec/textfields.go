// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"strings"
)

// scanFields calls field with the index in names and the value of each named member of an object. It is
// false for what only encoding/json decodes in the same way: names in other capitals or with escapes, a
// name that occurs twice, and values that field does not accept.
func scanFields(text []byte, names []string, field func(i int, value []byte) bool) bool {
	if len(text) == 0 || text[0] != '{' {
		return false
	}
	found := 0
	end, ok := scanMembers(text, 0, func(key []byte, at int) (int, bool) {
		end, ok := skipValue(text, at)
		if !ok || key[0] != '"' || !isPlain(key[1:len(key)-1]) {
			return at, false
		}
		i := indexName(names, key[1:len(key)-1])
		if i == unlisted {
			return end, true
		}
		if i == otherCase || found&(1<<i) != 0 {
			return at, false
		}
		found |= 1 << i
		return end, field(i, text[at:end])
	})
	return ok && end == len(text)
}

const (
	unlisted  = -1
	otherCase = -2
)

func indexName(names []string, name []byte) int {
	for i, listed := range names {
		if len(listed) == len(name) && (string(name) == listed || strings.EqualFold(string(name), listed)) {
			if string(name) != listed {
				return otherCase
			}
			return i
		}
	}
	return unlisted
}

// scanString accepts strings without escapes.
func scanString[T ~string](value []byte, to *T) bool {
	if len(value) < 2 || value[0] != '"' || !isPlain(value[1:len(value)-1]) {
		return false
	}
	if text := value[1 : len(value)-1]; string(*to) != string(text) {
		*to = T(text)
	}
	return true
}

var itemFields = []string{"id", "name"}

// scanReference reuses a known ID if it is equal.
func scanReference(value []byte, to *armReference) bool {
	known := to.ID
	to.ID = ""
	return scanFields(value, itemFields[:1], func(_ int, value []byte) bool {
		to.ID = known
		return scanString(value, &to.ID)
	})
}

// countItems accepts lists of objects as in armItem.
func countItems(value []byte) (n int, ok bool) {
	var ignored string
	valid := true
	ok = scanItems(value, func(item []byte) {
		n++
		valid = valid && scanFields(item, itemFields, func(_ int, value []byte) bool { return scanString(value, &ignored) })
	})
	return n, ok && valid
}

// Header has the properties of a resource that identify it and its state.
type Header struct {
	ID, Name *string
	Etag     string
	// State is the provisioning state.
	State string
	// HasProperties is true unless properties are absent or null.
	HasProperties bool
}

var (
	headerFields = []string{"id", "name", "etag", keyProperties}
	stateField   = []string{"provisioningState"}
)

// ScanHeader decodes the header of a valid document in one pass; false if encoding/json has to decode it.
func ScanHeader(text []byte) (h Header, ok bool) {
	var id, name string
	ok = scanFields(bytes.TrimSpace(text), headerFields, func(i int, value []byte) bool {
		switch headerFields[i] {
		case "id":
			h.ID = &id
			return scanString(value, &id)
		case "name":
			h.Name = &name
			return scanString(value, &name)
		case "etag":
			return json.Unmarshal(value, &h.Etag) == nil
		}
		h.HasProperties = !isNull(value)
		return !h.HasProperties || scanFields(value, stateField, func(_ int, value []byte) bool { return scanString(value, &h.State) })
	})
	return h, ok
}

func isNull(value []byte) bool { return string(value) == "null" }
