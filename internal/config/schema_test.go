// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"weir.dev/weir/test/referencepage"
)

type keyRow struct{ defaultText, meaning string }

// keyRows returns the rows of the reference page by key.
func keyRows(t *testing.T) map[string]keyRow {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/azure-json.md")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	rows := map[string]keyRow{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|(.*)\\| (.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		plain := func(text string) string {
			return strings.TrimSpace(strings.ReplaceAll(links.ReplaceAllString(text, "$1"), "`", ""))
		}
		if _, ok := rows[m[1]]; !ok {
			rows[m[1]] = keyRow{plain(m[2]), plain(m[3])}
		}
	}
	return rows
}

// keySchema returns the JSON schema of the keys of a struct, described as in the reference page.
func keySchema(t *testing.T, of reflect.Type, rows map[string]keyRow) map[string]any {
	t.Helper()
	properties := map[string]any{}
	for i := range of.NumField() {
		field := of.Field(i)
		if field.Anonymous {
			for key, property := range keySchema(t, field.Type, rows) {
				properties[key] = property
			}
			continue
		}
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		row, ok := rows[key]
		if !ok {
			t.Errorf("the reference page has no row for %s", key)
		}
		property := typeSchema(t, field.Type, rows)
		property["description"] = row.meaning
		if row.defaultText != "" && row.defaultText != "required" {
			property["description"] = row.meaning + ". Default: " + row.defaultText
		}
		properties[key] = property
	}
	return properties
}

func typeSchema(t *testing.T, of reflect.Type, rows map[string]keyRow) map[string]any {
	t.Helper()
	switch of.Kind() {
	case reflect.Pointer:
		return typeSchema(t, of.Elem(), rows)
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": typeSchema(t, of.Elem(), rows)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	case reflect.Struct:
		if of == reflect.TypeFor[LoadBalancerConfiguration]() {
			return map[string]any{"type": "object", "properties": keySchema(t, of, rows), "required": []string{"name"}}
		}
		return map[string]any{"type": "object"}
	default:
		return map[string]any{"type": "string"}
	}
}

// The JSON schema for editors has every key that is read, as the reference page describes it.
func TestSchemaForEditors(t *testing.T) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]any{
		"$schema":    "https://json-schema.org/draft/2020-12/schema",
		"title":      "azure.json",
		"type":       "object",
		"required":   []string{"subscriptionId", "resourceGroup"},
		"properties": keySchema(t, reflect.TypeFor[Config](), keyRows(t)),
	}); err != nil {
		t.Fatal(err)
	}
	referencepage.ExpectFile(t, "../../docs/reference/azure-json.schema.json", b.String())
}
