// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// fields is a JSON object. Stored bodies are immutable: a write copies along the changed path.
type fields = map[string]any

func objectField(m fields, key string) fields {
	o, _ := m[key].(fields)
	return o
}

func stringField(m fields, key string) string {
	s, _ := m[key].(string)
	return s
}

func propertyFields(m fields) fields { return objectField(m, "properties") }

func objectList(m fields, key string) []fields {
	list, _ := m[key].([]any)
	out := make([]fields, 0, len(list))
	for _, v := range list {
		if o, ok := v.(fields); ok {
			out = append(out, o)
		}
	}
	return out
}

func toArray(list []fields) []any {
	out := make([]any, len(list))
	for i, o := range list {
		out[i] = o
	}
	return out
}

// withField returns a copy of m.
func withField(m fields, key string, v any) fields {
	c := maps.Clone(m)
	if c == nil {
		c = fields{}
	}
	c[key] = v
	return c
}

func sameName(a, b string) bool { return strings.EqualFold(a, b) }

func indexByName(list []fields, name string) int {
	return slices.IndexFunc(list, func(o fields) bool { return sameName(stringField(o, "name"), name) })
}

// newNameIndex is for lookups by name in a loop. Its keys are lower-cased; the first of equal names counts.
func newNameIndex(list []fields) map[string]fields {
	index := make(map[string]fields, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		index[strings.ToLower(stringField(list[i], "name"))] = list[i]
	}
	return index
}

func lookUpName(index map[string]fields, name string) (fields, bool) {
	o, found := index[strings.ToLower(name)]
	return o, found
}

// parseBody preserves numbers as written.
func parseBody(raw []byte) (fields, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var m fields
	if err := dec.Decode(&m); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w", err)
	}
	if m == nil {
		return nil, errors.New("not a JSON object: null")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return m, nil
}

// checkShape rejects known properties of the wrong JSON type, so later code needs no type checks.
func checkShape(id resourceID, body fields) error {
	if id.child != nil {
		return checkChildShape(id.child, body, id.child.collection)
	}
	if err := requireObject(body, "properties", id.root.collection); err != nil {
		return err
	}
	if err := requireObject(body, "sku", id.root.collection); err != nil {
		return err
	}
	for _, k := range id.root.children {
		if err := requireObjects(propertyFields(body), k.collection, id.root.collection); err != nil {
			return err
		}
		for i, c := range objectList(propertyFields(body), k.collection) {
			if err := checkChildShape(k, c, fmt.Sprintf("%s[%d]", k.collection, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkChildShape(k *childKind, body fields, where string) error {
	if err := requireString(body, "name", where); err != nil {
		return err
	}
	if err := requireObject(body, "properties", where); err != nil {
		return err
	}
	if _, given := propertyFields(body)["name"]; given && k.json != "" {
		return fmt.Errorf("Could not find member 'name' on object of type '%s'. Path 'properties.%s.properties.name'", k.json, where) //nolint:staticcheck // the service's words
	}
	if k != poolKind {
		return nil
	}
	if err := requireObjects(propertyFields(body), addresses, where); err != nil {
		return err
	}
	for i, a := range objectList(propertyFields(body), addresses) {
		at := fmt.Sprintf("%s.%s[%d]", where, addresses, i)
		if err := errors.Join(requireString(a, "name", at), requireObject(a, "properties", at),
			requireString(propertyFields(a), "ipAddress", at)); err != nil {
			return err
		}
	}
	return nil
}

func requireObject(m fields, key, where string) error {
	if v, ok := m[key]; ok && v != nil && objectField(m, key) == nil {
		return fmt.Errorf("%s: %s must be an object", where, key)
	}
	return nil
}

func requireString(m fields, key, where string) error {
	if v, ok := m[key]; ok && v != nil {
		if _, isText := v.(string); !isText {
			return fmt.Errorf("%s: %s must be a string", where, key)
		}
	}
	return nil
}

func requireObjects(m fields, key, where string) error {
	v, ok := m[key]
	if !ok || v == nil {
		return nil
	}
	list, isList := v.([]any)
	if !isList || len(objectList(m, key)) != len(list) {
		return fmt.Errorf("%s: %s must be an array of objects", where, key)
	}
	return nil
}

func (e *Emulator) stripReadOnly(id resourceID, body fields) fields {
	if id.child != nil {
		return e.stripReadOnlyChild(id.child, body, id.childName)
	}
	body = withoutFields(body, "id", "etag", "type")
	body["name"] = id.name
	props := withoutFields(propertyFields(body), slices.Concat([]string{"provisioningState", "resourceGuid"}, id.root.derived, id.root.serverState)...)
	if dns := objectField(props, "dnsSettings"); dns != nil && id.root == publicIPKind {
		props["dnsSettings"] = withoutFields(dns, "fqdn")
	}
	if os := objectField(props, "osProfile"); os != nil && id.root == virtualMachineKind {
		props["osProfile"] = withoutFields(os, "adminPassword", "customData") // write-only
	}
	for _, k := range id.root.children {
		list := objectList(props, k.collection)
		for i, c := range list {
			list[i] = e.stripReadOnlyChild(k, c, stringField(c, "name"))
		}
		props[k.collection] = toArray(list)
	}
	body["properties"] = props
	if id.root == instanceKind {
		body = withIPConfigs(withoutFields(body, "instanceId"), func(_ string, c fields) fields {
			return withField(c, "properties", withoutFields(propertyFields(c), "privateIPAddress"))
		})
	}
	return body
}

func (e *Emulator) stripReadOnlyChild(k *childKind, body fields, name string) fields {
	body = withoutFields(body, "id", "etag", "type")
	body["name"] = name
	props := withoutFields(propertyFields(body), append([]string{"provisioningState"}, k.derived...)...)
	for _, key := range k.serverState {
		delete(props, key)
	}
	if (k == frontendKind || k == ipConfigKind || k == linkConfigKind) && !isStatic(props) {
		delete(props, "privateIPAddress")
	}
	if k == poolKind {
		list := objectList(props, addresses)
		for i, a := range list {
			a = withoutFields(a, "id", "etag", "type")
			if stringField(a, "name") == "" {
				a["name"] = e.newGUID()
			}
			a["properties"] = withoutFields(propertyFields(a), "provisioningState")
			list[i] = a
		}
		props[addresses] = toArray(list)
	}
	body["properties"] = props
	return body
}

func fillDefaults(kind *rootKind, body fields) fields {
	props := withDefaults(propertyFields(body), kind.defaults)
	for _, k := range kind.children {
		if len(k.defaults) == 0 {
			continue
		}
		list := objectList(props, k.collection)
		for i, c := range list {
			list[i] = withField(c, "properties", withDefaults(propertyFields(c), k.defaults))
		}
		props[k.collection] = toArray(list)
	}
	return withField(body, "properties", props)
}

func withDefaults(props, defaults fields) fields {
	out := maps.Clone(defaults)
	if out == nil {
		out = fields{}
	}
	maps.Copy(out, props)
	return out
}

func withoutFields(m fields, keys ...string) fields {
	c := fields{}
	for k, v := range m {
		if v != nil && !slices.Contains(keys, k) {
			c[k] = v
		}
	}
	return c
}
