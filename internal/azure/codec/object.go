// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"errors"
	"slices"
)

// jsonObject is an editable JSON object. Members that are neither read nor set remain text.
type jsonObject struct {
	members []jsonMember
	// other is the text of a list item that is not an object; nil once it has members.
	other  []byte
	parser *objectParser
}

type jsonMember struct {
	key  string
	text []byte // if value is nil
	// value is a *jsonObject, a []*jsonObject, or anything that encoding/json encodes.
	value any
}

// objectParser allocates the parts of one document in chunks.
type objectParser struct {
	members []jsonMember
	objects []jsonObject
	names   map[string]string // by quoted key
	// size is the length of all documents.
	size int
}

const chunkSize = 64

var errNoObject = errors.New("it is not a JSON object")

// parseDocument returns an editable copy of a text that was decoded before, so it is valid JSON.
func (p *objectParser) parseDocument(text []byte) (*jsonObject, error) {
	p.size += len(text)
	members, ok := p.parseMembers(text)
	if !ok {
		return nil, errNoObject
	}
	return p.addObject(jsonObject{members: members}), nil
}

func (p *objectParser) addObject(o jsonObject) *jsonObject {
	if len(p.objects) == cap(p.objects) {
		p.objects = make([]jsonObject, 0, chunkSize)
	}
	o.parser = p
	p.objects = append(p.objects, o)
	return &p.objects[len(p.objects)-1]
}

func (p *objectParser) parseMembers(text []byte) ([]jsonMember, bool) {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != '{' {
		return nil, false
	}
	from := len(p.members)
	_, ok := scanMembers(text, at, func(key []byte, at int) (int, bool) {
		end, ok := skipValue(text, at)
		if ok {
			from = p.reserveMember(from)
			p.members = append(p.members, jsonMember{key: p.memberName(key), text: text[at:end]})
		}
		return end, ok
	})
	return p.members[from:len(p.members):len(p.members)], ok
}

// reserveMember makes room for a member and moves those since from, which are one object's, to a new chunk
// if needed.
func (p *objectParser) reserveMember(from int) int {
	if len(p.members) < cap(p.members) {
		return from
	}
	begun := p.members[from:]
	p.members = append(make([]jsonMember, 0, max(chunkSize, 2*len(begun))), begun...)
	return 0
}

// parseList returns the items of an array, or nil for other values.
func (p *objectParser) parseList(text []byte) []*jsonObject {
	var items []*jsonObject
	ok := scanItems(text, func(text []byte) {
		item := jsonObject{}
		if members, ok := p.parseMembers(text); ok {
			item.members = members
		} else {
			item.other = text
		}
		items = append(items, p.addObject(item))
	})
	if !ok {
		return nil
	}
	return items
}

// memberName returns the name in a quoted key, which is in memory once per document.
func (p *objectParser) memberName(key []byte) string {
	name, known := p.names[string(key)]
	if !known {
		name = stringOf(key)
		if p.names == nil {
			p.names = map[string]string{}
		}
		p.names[string(key)] = name
	}
	return name
}

// stringOf returns the value of a JSON string; empty for other values.
func stringOf(text []byte) string {
	if len(text) < 2 || text[0] != '"' {
		return ""
	}
	if isPlain(text[1 : len(text)-1]) {
		return string(text[1 : len(text)-1])
	}
	var value string
	if json.Unmarshal(text, &value) != nil {
		return ""
	}
	return value
}

const keyProperties = "properties"

func newObject(key string, value any) *jsonObject {
	return &jsonObject{members: []jsonMember{{key: key, value: value}}}
}

// find returns the last member of a name, as encoding/json does, or nil.
func (o *jsonObject) find(key string) *jsonMember {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.members[i].key == key {
			return &o.members[i]
		}
	}
	return nil
}

// has reports whether a member is present and not null.
func (o *jsonObject) has(key string) bool {
	m := o.find(key)
	return m != nil && (m.value != nil || string(m.text) != "null")
}

// value returns a member to be set elsewhere; nil if it is absent.
func (o *jsonObject) value(key string) any {
	switch m := o.find(key); {
	case m == nil:
		return nil
	case m.value == nil:
		return memberText(m.text)
	default:
		return m.value
	}
}

func (o *jsonObject) set(key string, value any) {
	o.other = nil
	if m := o.find(key); m != nil {
		m.value = value
		return
	}
	o.members = append(o.members, jsonMember{key: key, value: value})
}

func deleteKeys(o *jsonObject, keys ...string) {
	o.members = slices.DeleteFunc(o.members, func(m jsonMember) bool { return slices.Contains(keys, m.key) })
}

// parsedObject returns a nested object, or nil.
func (o *jsonObject) parsedObject(key string) *jsonObject {
	m := o.find(key)
	if m == nil {
		return nil
	}
	if inner, ok := m.value.(*jsonObject); ok || m.value != nil {
		return inner
	}
	members, ok := o.parser.parseMembers(m.text)
	if !ok {
		return nil
	}
	inner := o.parser.addObject(jsonObject{members: members})
	m.value = inner
	return inner
}

// childObject returns a nested object, or a detached empty one.
func childObject(o *jsonObject, key string) *jsonObject {
	if inner := o.parsedObject(key); inner != nil {
		return inner
	}
	return &jsonObject{}
}

// ensureObject also creates a missing object.
func ensureObject(o *jsonObject, key string) *jsonObject {
	inner := o.parsedObject(key)
	if inner == nil {
		inner = &jsonObject{}
		o.set(key, inner)
	}
	return inner
}

// objectList returns the items of a list to edit. An item that is not an object is an empty one, and is
// retained until a member is set.
func objectList(o *jsonObject, key string) []*jsonObject {
	m := o.find(key)
	if m == nil {
		return nil
	}
	if m.value == nil {
		items := o.parser.parseList(m.text)
		if items == nil {
			return nil
		}
		m.value = items
	}
	list, _ := m.value.([]*jsonObject)
	return list
}

func stringValue(o *jsonObject, key string) string {
	m := o.find(key)
	if m == nil {
		return ""
	}
	if text, ok := m.value.(string); ok || m.value != nil {
		return text
	}
	return stringOf(m.text)
}

// referenceID returns the ID of a reference.
func referenceID(o *jsonObject, key string) string { return stringValue(childObject(o, key), "id") }
