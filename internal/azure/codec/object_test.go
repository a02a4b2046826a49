// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// drawText draws a JSON value with spaces, escapes, equal names and numbers of any form.
func drawText(t *rapid.T, depth int) string {
	space := rapid.SampledFrom([]string{"", "", " ", "\r\n\t"}).Draw(t, "space")
	words := rapid.SampledFrom([]string{`"name"`, `"id"`, `"properties"`, `"b"`, `"a"`, `"\u0061"`, `"<"`, `"\""`, `"é\u2028\/"`, "\"\xff\"", `"zz\\"`, `""`})
	kind := rapid.IntRange(0, 5).Draw(t, "kind")
	if depth == 0 {
		kind = 2 + kind%4
	}
	var parts []string
	switch kind {
	case 0:
		for range rapid.IntRange(0, 4).Draw(t, "members") {
			parts = append(parts, space+words.Draw(t, "key")+space+":"+drawText(t, depth-1))
		}
		return space + "{" + strings.Join(parts, ",") + space + "}" + space
	case 1:
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			parts = append(parts, drawText(t, depth-1))
		}
		return space + "[" + strings.Join(parts, ",") + space + "]" + space
	case 2:
		return space + words.Draw(t, "string") + space
	}
	return space + rapid.SampledFrom([]string{"null", "true", "false", "0", "-1.50e+3", "12345678901234567890", "{}", "[]"}).Draw(t, "literal") + space
}

// The text of an object is that of encoding/json for the same object, whatever was read before.
func TestTheTextOfAnObject(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := `{"properties":` + drawText(t, 4) + `,"list":` + drawText(t, 3) + `,"a":` + drawText(t, 2) + `}`
		want, err := readObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		o, err := new(objectParser).parseDocument([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"properties", "list", "a"} {
			if rapid.Bool().Draw(t, "read") {
				childObject(childObject(o, key), "a")
				for _, item := range objectList(o, key) {
					stringValue(childObject(item, "b"), "name")
				}
			}
		}
		if rapid.Bool().Draw(t, "set") {
			o.set("a", "<new>")
			want["a"] = "<new>"
		}
		if rapid.Bool().Draw(t, "delete") {
			deleteKeys(o, "list")
			delete(want, "list")
		}
		got, err := Marshal(o)
		wanted, wantErr := json.Marshal(want)
		if diff := cmp.Diff(string(wanted), string(got)); diff != "" || err != nil || wantErr != nil {
			t.Fatalf("of %s: %v (-want +got):\n%s", text, err, diff)
		}
	})
}

// A text that is not valid JSON is an error, or unchanged in what was not read.
func TestTheTextOfABrokenObject(t *testing.T) {
	for _, text := range []string{``, `null`, `[]`, `{`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":{]}`, `{"a":[1 2]}`, `{"a":["]}`, `{"a":[`, `{"a":"\x"}`, `{"a":{"b" 1}}`, `{1:2}`} {
		o, err := new(objectParser).parseDocument([]byte(text))
		if err != nil {
			continue
		}
		if got, err := Marshal(o); err == nil && json.Valid(got) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

var equalPools = cmp.Options{cmpopts.EquateComparable(lb.Pool{}.ID, lb.Address{}.IP)}

// A pool is the same, decoded in one pass over its text or by encoding/json.
func TestAPoolIsScannedAsItIsDecoded(t *testing.T) {
	expect := func(t interface{ Fatalf(string, ...any) }, doc Document) bool {
		var pool armPool
		err := json.Unmarshal(doc.Text, &pool)
		want := pool.toPool(lb.PoolID{Name: pool.Name}, doc)
		got, ok := scanPool(lb.PoolID{}, doc)
		if !ok {
			return false
		}
		if diff := cmp.Diff(want, got, equalPools); err != nil || diff != "" {
			t.Fatalf("%s: %v (-decoded +scanned):\n%s", doc.Text, err, diff)
		}
		return true
	}
	rapid.Check(t, func(t *rapid.T) {
		if doc := documentOf(drawPool(t)); !expect(t, doc) {
			t.Fatalf("not scanned: %s", doc.Text)
		}
	})
	const address = `{"name":"p","properties":{"loadBalancerBackendAddresses":[{"name":"a","properties":{"ipAddress":"10.0.0.1","adminState":"Down","virtualNetwork":{"id":"/v"}}},`
	for text, scanned := range map[string]bool{
		address + `{"name":"b","properties":{"virtualNetwork":{}}}]}}`:                  true, // of another one nothing is taken
		address + `{"properties":{"networkInterfaceIPConfiguration":{"id":"/nic"}}}]}}`: true,
		address + `{"name":"b","properties":{"ipAddress":"x","adminState":""}}]}}`:      true,
		address + `null]}}`: false,
		`{"name":"p","etag":"W/\"1\"","properties":{"provisioningState":"Deleting","outboundRule":{"id":"/o"}}}`:       true,
		`{"properties":{"backendIPConfigurations":[{"id":"/nic"}],"outboundRules":[{"id":"/o"}],"virtualNetwork":{}}}`: true,
		`{"properties":{"backendIPConfigurations":[1]}}`:                                                               false,
		`{"properties":{"drainPeriodInSeconds":30}}`:                                                                   true,
		`{"properties":{"drainPeriodInSeconds":null}}`:                                                                 true,
		`{"properties":{"drainPeriodInSeconds":"30"}}`:                                                                 false,
		`{"properties":{"outboundRule":null}}`:                                                                         false,
		`{"properties":null}`:                                                                                          false,
		`{"Name":"p"}`:                                                                                                 false,
		`{"name":"p","name":"q"}`:                                                                                      false,
		`{"name":1}`:                                                                                                   false,
		`{"name":"\u0070"}`:                                                                                            false,
		`{"\u006eame":"p"}`:                                                                                            false,
		`null`:                                                                                                         false,
		`{"properties":{"provisioningstate":"Updating"}}`:                                                              false,
		`{"properties":{"unknown":{"name":[]}},"other":"x"}`:                                                           true,
	} {
		if got := expect(t, newDocument(text)); got != scanned {
			t.Errorf("%s: scanned %t", text, got)
		}
	}
}

// A header is that of encoding/json, or left to it.
func TestAHeaderIsScannedAsItIsDecoded(t *testing.T) {
	for text, scanned := range map[string]bool{
		" " + `{"id":"/a","name":"a","etag":"W/\"1\"","properties":{"provisioningState":"Updating","x":{"id":"/b"}}}` + " ": true,
		`{"properties":{}}`:                      true,
		`{"etag":null,"properties":null}`:        true,
		`{"id":null}`:                            false,
		`{"id":"/a","ID":"/b"}`:                  false,
		`{"id":"/a","id":"/b"}`:                  false,
		`{"etag":1}`:                             false,
		`{"properties":[]}`:                      false,
		`{"properties":{"provisioningState":1}}`: false,
		`[]`:                                     false,
	} {
		got, ok := ScanHeader([]byte(text))
		if ok != scanned {
			t.Errorf("%s: scanned %t", text, ok)
		}
		var want struct {
			ID, Name   *string
			Etag       string
			Properties *struct {
				State string `json:"provisioningState"`
			}
		}
		if err := json.Unmarshal([]byte(text), &want); ok && err != nil {
			t.Errorf("%s: %v", text, err)
		}
		header := Header{ID: want.ID, Name: want.Name, Etag: want.Etag, HasProperties: want.Properties != nil}
		if want.Properties != nil {
			header.State = want.Properties.State
		}
		if diff := cmp.Diff(header, got); ok && diff != "" {
			t.Errorf("%s (-decoded +scanned):\n%s", text, diff)
		}
	}
}
