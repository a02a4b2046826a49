// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// ErrNotRead is of a write of what was not read before: what else it holds would be lost.
var ErrNotRead = errors.New("it was not read before, so what else it holds would be lost")

// Document is a resource as Azure returned it. It is the Origin of what is decoded from it, and nothing
// changes it: a write edits a copy.
type Document struct {
	// Version is the api-version it was read with, and has to be written with: another one may have
	// other properties.
	Version string
	Text    json.RawMessage
}

// VersionOf returns the api-version with which an Origin was read; empty if nothing was read.
func VersionOf(origin any) string {
	switch origin := origin.(type) {
	case Document:
		return origin.Version
	case BalancerDocument:
		return origin.Version
	}
	return ""
}

type object = map[string]any

// read returns an Origin as an object of its own. Numbers stay as they are written.
func read(origin any) (object, error) {
	document, ok := origin.(Document)
	if !ok || document.Text == nil {
		return nil, ErrNotRead
	}
	return document.object()
}

func (d Document) object() (object, error) {
	var body object
	dec := json.NewDecoder(bytes.NewReader(d.Text))
	dec.UseNumber()
	err := dec.Decode(&body)
	return body, err
}

// at returns an object within an object; an empty one that is part of nothing if there is none.
func at(o object, key string) object {
	if inner, ok := o[key].(object); ok {
		return inner
	}
	return object{}
}

// within returns an object within an object, which gets an empty one if it has none.
func within(o object, key string) object {
	inner, ok := o[key].(object)
	if !ok {
		inner = object{}
		o[key] = inner
	}
	return inner
}

// list returns the objects of an array, an empty one for what is no object.
func list(v any) []object {
	array, _ := v.([]any)
	all := make([]object, len(array))
	for i, item := range array {
		if all[i], _ = item.(object); all[i] == nil {
			all[i] = object{}
		}
	}
	return all
}

func word(o object, key string) string {
	text, _ := o[key].(string)
	return text
}

func without(o object, keys ...string) {
	for _, key := range keys {
		delete(o, key)
	}
}

// withoutAll takes properties that only Azure sets from the parts of a kind. Azure shows no part as null.
func withoutAll(properties object, kind string, azures ...string) {
	if properties[kind] == nil {
		return
	}
	parts := list(properties[kind])
	for _, part := range parts {
		strip(part, azures...)
	}
	properties[kind] = parts
}

// strip takes from a part of a resource what only Azure sets, and returns its properties.
func strip(part object, azures ...string) object {
	without(part, "etag", "type")
	properties := within(part, "properties")
	without(properties, "provisioningState")
	without(properties, azures...)
	return properties
}

// The functions below put what is wanted into an object. Where the object is not fresh and has it already they
// change nothing: what Azure leaves out, or spells its own way, stays so.

// set puts a number or a truth value, zeros too.
func set[T comparable](fresh bool, o object, key string, was, is T) {
	if fresh || was != is {
		o[key] = is
	}
}

// say puts a word; empty is none.
func say[T ~string](fresh bool, o object, key string, was, is T) {
	switch {
	case !fresh && was == is:
	case is == "":
		delete(o, key)
	default:
		o[key] = string(is)
	}
}

// refer puts a reference; an empty id is none.
func refer(o object, key, was, is string) {
	switch {
	case strings.EqualFold(was, is):
	case is == "":
		delete(o, key)
	default:
		o[key] = object{"id": is}
	}
}

// parts gives an object the parts of a kind, each edited from what was read of it. edit gets fresh for a
// new part, which has its name. No part is an empty array: Azure would keep what an absent one has.
func parts[T any](properties object, kind string, was, next []T, name func(T) string, edit func(part object, fresh bool, was, is T)) {
	shown, known := map[string]object{}, map[string]T{}
	for _, part := range list(properties[kind]) {
		shown[strings.ToLower(word(part, "name"))] = part
	}
	for _, part := range was {
		known[strings.ToLower(name(part))] = part
	}
	all := make([]object, 0, len(next))
	for _, is := range next {
		key := strings.ToLower(name(is))
		part, ok := shown[key]
		if !ok {
			part = object{"name": name(is)}
		}
		delete(shown, key)
		edit(part, !ok, known[key], is)
		all = append(all, part)
	}
	properties[kind] = all
}

// editTags gives a resource tags; none is an empty object.
func editTags(body object, tags map[string]string) {
	all := object{}
	for name, text := range tags {
		all[name] = text
	}
	body["tags"] = all
}

type shownRef struct {
	ID string `json:"id"`
}

// name is the last part of the id.
func (r shownRef) name() string { return r.ID[strings.LastIndexByte(r.ID, '/')+1:] }
