// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// assignKeys sets the fields of a struct from keys and returns the paths of unknown keys. It decodes each key
// separately so that errors can name it. under is the path prefix.
func assignKeys(target reflect.Value, keys map[string]json.RawMessage, under string) (rest []string, err error) {
	fields := map[string]reflect.Value{}
	collectFields(target, fields)
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		folded := strings.ToLower(key)
		if twin, ok := seen[folded]; ok {
			return nil, fmt.Errorf("key %q is given twice, as %q as well: remove one", visiblePath(under+key), visiblePath(under+twin))
		}
		seen[folded] = key
		field, ok := fields[folded]
		if !ok {
			rest = append(rest, under+key)
			continue
		}
		below, err := setField(field, keys[key], under+key)
		if err != nil {
			return nil, err
		}
		rest = append(rest, below...)
	}
	return rest, nil
}

func setField(field reflect.Value, value json.RawMessage, path string) (rest []string, err error) {
	t := field.Type()
	switch kind := t.Kind(); {
	case string(value) == "null": // treated as absent
		return nil, nil
	case kind == reflect.Pointer && t.Elem().Kind() == reflect.Struct:
		field.Set(reflect.New(t.Elem()))
		return setField(field.Elem(), value, path)
	case kind == reflect.Struct:
		var keys map[string]json.RawMessage
		if err := decodeValue(value, &keys, t, path); err != nil {
			return nil, err
		}
		return assignKeys(field, keys, path+".")
	case kind == reflect.Slice:
		return setList(field, value, path)
	case kind == reflect.Map:
		return nil, setMap(field, value, path)
	}
	return nil, decodeValue(value, field.Addr().Interface(), t, path)
}

func setList(field reflect.Value, value json.RawMessage, path string) (rest []string, err error) {
	var items []json.RawMessage
	if err := decodeValue(value, &items, field.Type(), path); err != nil {
		return nil, err
	}
	field.Set(reflect.MakeSlice(field.Type(), len(items), len(items)))
	for i, item := range items {
		below, err := setField(field.Index(i), item, fmt.Sprintf("%s[%d]", path, i))
		if err != nil {
			return nil, err
		}
		rest = append(rest, below...)
	}
	return rest, nil
}

// setMap sets a map of strings. Its keys are case-sensitive.
func setMap(field reflect.Value, value json.RawMessage, path string) error {
	var items map[string]json.RawMessage
	if err := decodeValue(value, &items, field.Type(), path); err != nil {
		return err
	}
	field.Set(reflect.MakeMapWithSize(field.Type(), len(items)))
	for _, key := range slices.Sorted(maps.Keys(items)) {
		item := reflect.New(field.Type().Elem()).Elem()
		if _, err := setField(item, items[key], path+"."+key); err != nil {
			return err
		}
		field.SetMapIndex(reflect.ValueOf(key), item)
	}
	return nil
}

// decodeValue returns errors without the value, which may be secret.
func decodeValue(value json.RawMessage, into any, t reflect.Type, path string) error {
	if json.Unmarshal(value, into) != nil {
		want, got := describeType(t, maxValues[strings.ToLower(path)]), describeValue(value)
		return fmt.Errorf("key %q: want %s, got %s%s", visiblePath(path), want, got, quoteHint(want, got))
	}
	return nil
}

func collectFields(target reflect.Value, fields map[string]reflect.Value) {
	for i := range target.NumField() {
		field := target.Type().Field(i)
		if field.Anonymous {
			collectFields(target.Field(i), fields)
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[strings.ToLower(name)] = target.Field(i)
	}
}

func describeType(t reflect.Type, limit int) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[WriteStrategy]() {
		return "auto or serial"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return fmt.Sprintf("a whole number of at most %d", limit)
	case reflect.Struct, reflect.Map:
		return "a mapping"
	case reflect.Slice:
		return "a list"
	}
	return "a string"
}

// quoteHint returns a hint if only quotes are wrong.
func quoteHint(want, got string) string {
	switch {
	case want == "a string" && (got == "a number" || got == "true or false"):
		return ": put it between double quotes"
	case want == "true or false" && got == "a string":
		return ": write true or false without quotes"
	case strings.HasPrefix(want, "a whole number") && got == "a string":
		return ": write the number without quotes"
	}
	return ""
}

func describeValue(value json.RawMessage) string {
	switch {
	case len(value) == 0:
		return "nothing"
	case value[0] == '"':
		return "a string"
	case value[0] == '{':
		return "a mapping"
	case value[0] == '[':
		return "a list"
	case value[0] == 't' || value[0] == 'f':
		return "true or false"
	}
	return "a number"
}
