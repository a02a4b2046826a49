// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

// A write without changes sends all writable properties and no others. The SDK's sources list them,
// so new fields are covered.
func TestAWriteSendsBackAllThatAClientMaySet(t *testing.T) {
	readOnly := readOnlyFields(t)
	rapid.Check(t, func(t *rapid.T) {
		some := func() bool { return rapid.IntRange(0, 5).Draw(t, "leave out") > 0 }
		if rapid.Bool().Draw(t, "everything") {
			some = func() bool { return true }
		}
		b, p := &armnetwork.LoadBalancer{}, &armnetwork.PublicIPAddress{}
		full := fieldFiller{some: some}
		full.fillFields(reflect.ValueOf(b).Elem())
		full.fillFields(reflect.ValueOf(p).Elem())
		wantB, wantP := writableCopy(b, readOnly), writableCopy(p, readOnly)

		sent, err := encodeUnchanged(webPool.LoadBalancer, documentOf(b), DecodeLoadBalancer, encodeBalancer)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normalizeBody(wantB), normalizeBody(sent)); diff != "" {
			t.Fatalf("load balancer (-may be set +sent):\n%s", diff)
		}
		sentIP, err := encodeUnchanged(lb.ResourceID{}, documentOf(p), DecodePublicIP, EncodePublicIP)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(normalizeBody(wantP), normalizeBody(sentIP)); diff != "" {
			t.Fatalf("public IP (-may be set +sent):\n%s", diff)
		}
	})
}

// newDocument returns a Document with this text.
func newDocument(text string) Document {
	return Document{Version: "2025-05-01", Text: json.RawMessage(text)}
}

// documentOf returns the Document of an SDK value.
func documentOf(v any) Document {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return newDocument(string(text))
}

// encodeUnchanged decodes and encodes a document.
func encodeUnchanged[I, T any](id I, shown Document, decode func(I, Document) (T, error), encode func(T) (any, error)) (any, error) {
	got, err := decode(id, shown)
	if err != nil {
		return nil, err
	}
	return encode(got)
}

func encodeBalancer(b lb.LoadBalancer) (any, error) { return EncodeLoadBalancer(b, vnet) }

func encodePool(p lb.Pool) (any, error) { return EncodePool(p, vnet) }

// readOnlyFields parses the read-only fields from the SDK's sources, as Type.Field.
func readOnlyFields(t *testing.T) map[string]bool {
	t.Helper()
	file, _ := runtime.FuncForPC(reflect.ValueOf(armnetwork.NewClientFactory).Pointer()).FileLine(0)
	source, err := os.ReadFile(filepath.Join(filepath.Dir(file), "models.go"))
	if err != nil {
		t.Skipf("the SDK's sources are not here: %v", err)
	}
	found, kind, comment := map[string]bool{}, "", ""
	field := regexp.MustCompile(`^\t([A-Z]\w*)\s`)
	for line := range strings.Lines(string(source)) {
		switch text := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "type "):
			kind = strings.Fields(line)[1]
		case strings.HasPrefix(text, "//"):
			comment += text
			continue
		case field.MatchString(line) && strings.Contains(comment, "READ-ONLY"):
			found[kind+"."+field.FindStringSubmatch(line)[1]] = true
		}
		comment = ""
	}
	for _, known := range []string{"LoadBalancer.Etag", "BackendAddressPoolPropertiesFormat.OutboundRule"} {
		if !found[known] {
			t.Fatalf("%s is not found to be read-only", known)
		}
	}
	return found
}

// references are types that Azure shows only by ID.
var references = map[string]bool{"Subnet": true, "NatGateway": true, "InterfaceIPConfiguration": true, "IPConfiguration": true}

// fieldFiller sets fields to distinct values.
type fieldFiller struct {
	some  func() bool // whether to set the next field
	n     int
	depth int
}

func (f *fieldFiller) fillFields(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fillFields(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fillFields(v.Index(0))
		f.fillFields(v.Index(1))
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		item := reflect.New(v.Type().Elem()).Elem()
		f.fillFields(item)
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), item)
	case reflect.Struct:
		f.fillStruct(v)
	case reflect.String:
		f.n++
		v.SetString(fmt.Sprintf("/text/%d", f.n))
	case reflect.Int32:
		f.n++
		v.SetInt(int64(f.n))
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("a field of kind " + v.Kind().String() + " is new")
	}
}

func (f *fieldFiller) fillStruct(v reflect.Value) {
	kind := v.Type().Name()
	f.depth++
	defer func() { f.depth-- }()
	alone := references[kind] || kind == "PublicIPAddress" && f.depth > 1
	for i := range v.NumField() {
		field := v.Type().Field(i)
		// A part needs a name, and an entry without an address is an interface.
		always := field.Name == "Name" || field.Name == "Properties" || field.Name == "IPAddress"
		if alone && field.Name == "ID" || !alone && (always || f.some()) {
			f.fillFields(v.Field(i))
		}
	}
}

// writableCopy returns a copy without read-only fields.
func writableCopy[T any](full *T, readOnly map[string]bool) *T {
	text, err := json.Marshal(full)
	if err != nil {
		panic(err)
	}
	next := new(T)
	if err := json.Unmarshal(text, next); err != nil {
		panic(err)
	}
	stripReadOnly(reflect.ValueOf(next).Elem(), readOnly)
	return next
}

func stripReadOnly(v reflect.Value, readOnly map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			stripReadOnly(v.Elem(), readOnly)
		}
	case reflect.Slice:
		for i := range v.Len() {
			stripReadOnly(v.Index(i), readOnly)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if readOnly[v.Type().Name()+"."+v.Type().Field(i).Name] {
				v.Field(i).SetZero()
			} else {
				stripReadOnly(v.Field(i), readOnly)
			}
		}
	}
}

// normalizeBody normalizes a body: an empty array equals an absent one if the load balancer has none.
func normalizeBody(body any) any {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return withoutEmpty(v)
}

func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			if list, ok := item.([]any); ok && len(list) == 0 {
				delete(v, key)
				continue
			}
			v[key] = withoutEmpty(item)
		}
	case []any:
		for i := range v {
			v[i] = withoutEmpty(v[i])
		}
	}
	return v
}
