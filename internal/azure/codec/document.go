// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
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

type object = map[string]any

// readOrigin returns a copy of an Origin, with numbers as written.
func readOrigin(origin any) (object, error) {
	document, ok := origin.(Document)
	if !ok || document.Text == nil {
		return nil, ErrNotRead
	}
	return document.decodeObject()
}

func (d Document) decodeObject() (object, error) {
	var body object
	dec := json.NewDecoder(bytes.NewReader(d.Text))
	dec.UseNumber()
	err := dec.Decode(&body)
	return body, err
}

// childObject returns a nested object, or a detached empty one.
func childObject(o object, key string) object {
	if inner, ok := o[key].(object); ok {
		return inner
	}
	return object{}
}

// ensureObject also creates a missing object.
func ensureObject(o object, key string) object {
	inner, ok := o[key].(object)
	if !ok {
		inner = object{}
		o[key] = inner
	}
	return inner
}

// objectList replaces elements that are no objects by empty ones.
func objectList(v any) []object {
	array, _ := v.([]any)
	all := make([]object, len(array))
	for i, item := range array {
		if all[i], _ = item.(object); all[i] == nil {
			all[i] = object{}
		}
	}
	return all
}

func stringValue(o object, key string) string {
	text, _ := o[key].(string)
	return text
}

func deleteKeys(o object, keys ...string) {
	for _, key := range keys {
		delete(o, key)
	}
}

func stripItems(properties object, kind string, azures ...string) {
	if properties[kind] == nil {
		return
	}
	parts := objectList(properties[kind])
	for _, part := range parts {
		removeReadOnly(part, azures...)
	}
	properties[kind] = parts
}

func removeReadOnly(part object, azures ...string) object {
	deleteKeys(part, "etag", "type")
	properties := ensureObject(part, "properties")
	deleteKeys(properties, "provisioningState")
	deleteKeys(properties, azures...)
	return properties
}

// The functions below set a property only if the object is fresh or the value changes. Azure's
// defaults and spellings are otherwise retained.

// setValue also sets zero values.
func setValue[T comparable](fresh bool, o object, key string, was, want T) {
	if fresh || was != want {
		o[key] = want
	}
}

// setString deletes an empty string.
func setString[T ~string](fresh bool, o object, key string, was, want T) {
	switch {
	case !fresh && was == want:
	case want == "":
		delete(o, key)
	default:
		o[key] = string(want)
	}
}

// setReference deletes an empty reference.
func setReference(o object, key, was, want string) {
	switch {
	case strings.EqualFold(was, want):
	case want == "":
		delete(o, key)
	default:
		o[key] = object{"id": want}
	}
}

// setItems edits the parts of a kind into next. A new part is fresh and has only a name. No parts
// become an empty array, because Azure keeps the parts if it is absent.
func setItems[T any](properties object, kind string, was, next []T, name func(T) string, edit func(part object, fresh bool, was, want T)) {
	byName, known := map[string]object{}, map[string]T{}
	for _, part := range objectList(properties[kind]) {
		byName[strings.ToLower(stringValue(part, "name"))] = part
	}
	for _, part := range was {
		known[strings.ToLower(name(part))] = part
	}
	all := make([]object, 0, len(next))
	for _, want := range next {
		key := strings.ToLower(name(want))
		part, ok := byName[key]
		if !ok {
			part = object{"name": name(want)}
		}
		delete(byName, key)
		edit(part, !ok, known[key], want)
		all = append(all, part)
	}
	properties[kind] = all
}

func editTags(body object, tags map[string]string) {
	all := object{}
	for name, text := range tags {
		all[name] = text
	}
	body["tags"] = all
}

type armReference struct {
	ID string `json:"id"`
}

func (r armReference) lastSegment() string { return r.ID[strings.LastIndexByte(r.ID, '/')+1:] }
