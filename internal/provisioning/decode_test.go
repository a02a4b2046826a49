// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

func TestObjectsOfSources(t *testing.T) {
	source := `# a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: shop}}
`
	objects, err := text{[]byte(source), "objects.yaml", false, false}.decodeObjects(t.Context(), maxObjects)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(objects[0].String(), objects[1].isPrerequisite(), objects[2].secret, objects[0].secret, objectIDs(objects)); got != "ConfigMap atrue true false [/ConfigMap//a /Namespace//shop /Secret/shop/s]" {
		t.Errorf("got %s", got)
	}
	for bad, want := range map[string]string{
		"x: [":                            "object 1",
		"kind: ConfigMap":                 "no apiVersion and kind",
		"apiVersion: v1\nkind: ConfigMap": "no metadata.name",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a/b}": "slash",
		"- 1":                                    "object 1",
		"apiVersion: v1\nkind: List\nitems: [1]": "object 1",
	} {
		if _, err := (text{[]byte(bad), "", false, false}).decodeObjects(t.Context(), maxObjects); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", bad, err, want)
		}
	}
	if _, err := (text{[]byte("hunter2: ["), "", true, false}).decodeObjects(t.Context(), maxObjects); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the words of a Secret are told: %v", err)
	}
	for _, id := range objectIDs(objects) {
		kind, key, err := parseID(id)
		if raw, _ := json.Marshal(id); err != nil || !strings.Contains(string(raw), kind.Kind+"/"+key.Namespace+"/"+key.Name) {
			t.Errorf("%s: %v %v %v", id, kind, key, err)
		}
	}
}

// A small text never expands into large memory or long decoding.
func TestSourcesAreBounded(t *testing.T) {
	object := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	large := strings.Repeat("x", 200<<10)
	for name, tt := range map[string]struct{ data, want string }{
		"aliases":         {object + "a: &a \"" + large + "\"\nb: [" + strings.Repeat("*a, ", 5000) + "]\n", "anchors and aliases"},
		"merged":          {object + "a: &a {b: c}\nd: {<<: *a}\n", "anchors and aliases"},
		"a second object": {object + "---\n" + object + "x: &a 1\n", "object 2: anchors and aliases"},
		"values":          {object + "b: [" + strings.Repeat("1,", maxValues) + "]\n", "object 1: decoding it may take 86 MiB of memory, and at most 64 MiB are available: it has 390 KiB with 200011 separators of values; split it"},
		"objects in it":   {object + "b: [" + strings.Repeat("{a},", 260_000) + "]\n", "object 1: decoding it may take 226 MiB"},
		"escapes":         {object + "b: \"" + strings.Repeat("<", 900<<10) + "\"\nc: [" + strings.Repeat("1,", 110_000) + "]\n", "object 1: decoding it may take"},
		"values of many":  {strings.Repeat("---\n"+object+"b: ["+strings.Repeat("1,", maxValues/2)+"]\n", 3), "object 2: with it there are more than 200000 values"},
		"objects":         {strings.Repeat("---\n"+object, maxObjects+1), "object 1001: it is one too many"},
		"items":           {"apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {apiVersion: v1, kind: Node, metadata: {name: a}}\n", maxObjects+1), "one too many"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := decodeTexts(t.Context(), []text{{[]byte(tt.data), "objects.yaml", true, false}})
			runtime.ReadMemStats(&after)
			if _, ok := errors.AsType[invalidError](err); !ok || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.200v, want %q", err, tt.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 400<<20 {
				t.Errorf("%d MiB are taken for %d KiB", took>>20, len(tt.data)>>10)
			}
		})
	}
	half := strings.Repeat("---\n"+object, maxObjects/2+1)
	if _, err := decodeTexts(t.Context(), []text{{[]byte(half), "a", false, false}, {[]byte(half), "b", false, false}}); err == nil || !strings.HasPrefix(err.Error(), "b: object 500: it is one too many") {
		t.Errorf("two texts of half as many: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := decodeTexts(ended, []text{{[]byte(half), "a", false, false}}); !errors.Is(err, context.Canceled) {
		t.Errorf("after the attempt's end: %v", err)
	}
}

// Integers keep their exact value.
func TestIntegersSurvive(t *testing.T) {
	objects, err := text{[]byte("{apiVersion: v1, kind: X, metadata: {name: a}, big: 9007199254740993, small: -9223372036854775808}"), "", false, false}.decodeObjects(t.Context(), 1)
	if err != nil || string(objects[0].body) != `{"apiVersion":"v1","big":9007199254740993,"kind":"X","metadata":{"name":"a"},"small":-9223372036854775808}` {
		t.Errorf("got %s, %v", objects[0].body, err)
	}
}
