// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"
	"strings"
)

// ErrNotRead rejects a write without a prior read, which would lose other properties.
var ErrNotRead = errors.New("it was not read before, so what else it holds would be lost")

// Document is a resource as Azure returned it, and the Origin of the decoded value. It is never
// modified.
type Document struct {
	// Version is the api-version of the read and of the write; others may have other properties.
	Version string
	Text    json.RawMessage
}

// VersionOf returns the api-version of an Origin; empty if nothing was read.
func VersionOf(origin any) string {
	switch origin := origin.(type) {
	case Document:
		return origin.Version
	case LoadBalancerDocument:
		return origin.Version
	}
	return ""
}

// parseOrigin returns an editable copy of an Origin, with numbers as written.
func parseOrigin(origin any) (*jsonObject, error) {
	document, ok := origin.(Document)
	if !ok || document.Text == nil {
		return nil, ErrNotRead
	}
	return new(objectParser).parseDocument(document.Text)
}

func stripItems(properties *jsonObject, kind string, readOnly ...string) {
	if !properties.has(kind) {
		return
	}
	parts := objectList(properties, kind)
	for _, part := range parts {
		removeReadOnly(part, readOnly...)
	}
	properties.set(kind, parts)
}

func removeReadOnly(part *jsonObject, readOnly ...string) *jsonObject {
	deleteKeys(part, "etag", "type")
	properties := ensureObject(part, keyProperties)
	deleteKeys(properties, "provisioningState")
	deleteKeys(properties, readOnly...)
	return properties
}

// The functions below set a property only if the object is fresh or the value changes. Azure's
// defaults and spellings are otherwise retained.

// setValue also sets zero values.
func setValue[T comparable](fresh bool, o *jsonObject, key string, old, want T) {
	if fresh || old != want {
		o.set(key, want)
	}
}

// setString deletes an empty string.
func setString[T ~string](fresh bool, o *jsonObject, key string, old, want T) {
	switch {
	case !fresh && old == want:
	case want == "":
		deleteKeys(o, key)
	default:
		o.set(key, string(want))
	}
}

// setReference deletes an empty reference.
func setReference(o *jsonObject, key, old, want string) {
	switch {
	case strings.EqualFold(old, want):
	case want == "":
		deleteKeys(o, key)
	default:
		o.set(key, newObject("id", want))
	}
}

// setItems edits the parts of a kind into next. A new part is fresh and has only a name. No parts
// become an empty array, because Azure keeps the parts if it is absent.
func setItems[T any](properties *jsonObject, kind string, old, next []T, name func(T) string, edit func(part *jsonObject, fresh bool, old, want T)) {
	parts := objectList(properties, kind)
	byName, known := make(map[string]*jsonObject, len(parts)), make(map[string]T, len(old))
	for _, part := range parts {
		byName[strings.ToLower(stringValue(part, "name"))] = part
	}
	for _, part := range old {
		known[strings.ToLower(name(part))] = part
	}
	items := make([]*jsonObject, 0, len(next))
	for _, want := range next {
		key := strings.ToLower(name(want))
		part, ok := byName[key]
		if !ok {
			part = newObject("name", name(want))
		}
		delete(byName, key)
		edit(part, !ok, known[key], want)
		items = append(items, part)
	}
	properties.set(kind, items)
}

func editTags(body *jsonObject, tags map[string]string) {
	if tags == nil {
		tags = map[string]string{}
	}
	body.set("tags", tags)
}

type armReference struct {
	ID string `json:"id"`
}

func (r armReference) lastSegment() string { return r.ID[strings.LastIndexByte(r.ID, '/')+1:] }
