// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"weir.dev/weir/internal/provisioning/charts"
	"weir.dev/weir/internal/provisioning/policy"
)

// An attempt keeps only the kinds of its objects, and reads those of a group version together.
func TestKindsOfATarget(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"kind":"APIResourceList","resources":[{"name":"as/status","kind":"A0"},{"name":"long","kind":"Long"},`)
	for n := range 1000 {
		fmt.Fprintf(&text, `{"name":"a%ds","kind":"A%d","namespaced":true,"shortNames":["%s"]},`, n, n, strings.Repeat("x", 1000))
	}
	text.WriteString(`{"name":"roots","kind":"Root"}]}`)
	list := strings.Replace(text.String(), `"name":"long"`, `"name":"`+strings.Repeat("x", 300)+`"`, 1)
	requests := map[string]int{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		requests[req.URL.Path]++
		w.Header().Set("Content-Type", "application/json")
		switch req.URL.Path {
		case "/apis/far.example.com":
			_, _ = io.WriteString(w, `{"preferredVersion":{"version":"v2"},"versions":[{"version":"v1"},{"version":"v2"}]}`)
		case "/apis/far.example.com/v1":
			_, _ = io.WriteString(w, list)
		case "/apis/far.example.com/v2":
			_, _ = io.WriteString(w, `{"resources":[]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(server.Close)
	of := func(kind string) object {
		return object{gvk: schema.GroupVersionKind{Group: "far.example.com", Version: "v1", Kind: kind}, name: "a"}
	}
	before := heapInUse()
	to := connectServer(t.Context(), t, server)
	a := &run{target: to, log: &policy.Log{}}
	objects := []object{of("A0"), of("A1"), of("Root"), of("Absent"), of("Absent")}
	if err := a.setNamespaces(t.Context(), objects); err != nil {
		t.Fatal(err)
	}
	if objects[0].namespace != "default" || objects[1].namespace != "default" || objects[2].namespace != "" || len(to.kinds.mappings) != 3 {
		t.Errorf("placed %v, kept %v", objects, to.kinds.mappings)
	}
	if n := requests["/apis/far.example.com/v1"]; n != 2 {
		t.Errorf("%d requests, want one for all kinds, and one for the kind that is absent", n)
	}
	if kept := int64(heapInUse() - before); kept > 512<<10 {
		t.Errorf("%d KiB are kept", kept>>10)
	}
	runtime.KeepAlive(to)
	mapping, err := to.RESTMapper().RESTMapping(schema.GroupKind{Group: "far.example.com", Kind: "Root"})
	if err != nil || mapping.Resource.Resource != "roots" || mapping.Scope != meta.RESTScopeRoot {
		t.Errorf("without a version: %v, %v", mapping, err)
	}
	if _, err := to.RESTMapper().RESTMapping(schema.GroupKind{Group: "none.example.com", Kind: "Root"}); !meta.IsNoMatchError(err) {
		t.Errorf("a group that is absent: %v", err)
	}
	for _, version := range []string{"..", "../..", "a/b", ""} {
		if _, err := to.RESTMapper().RESTMapping(schema.GroupKind{Group: "far.example.com", Kind: "Root"}, version); !meta.IsNoMatchError(err) {
			t.Errorf("version %q: %v", version, err)
		}
	}
	if err := a.setNamespaces(t.Context(), []object{of("Long")}); err == nil || !strings.Contains(err.Error(), "names the resource of Long with 300 bytes") {
		t.Errorf("a long name: %v", err)
	}
	var many []object
	for n := range maxKinds {
		many = append(many, of(fmt.Sprint("A", n)))
	}
	if err := a.setNamespaces(t.Context(), many); !errors.As(err, new(invalidError)) || !strings.Contains(err.Error(), "more than 200 kinds") {
		t.Errorf("with many kinds: %v", err)
	}
}

// A long group version is not repeated for each kind, and a long version is rejected.
func TestKindsForCharts(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	answers := map[string]string{
		"/version": `{"gitVersion":"v1.37.2"}`, "/api": `{"versions":["v1"]}`, "/apis": `{"groups":[{"versions":[{"groupVersion":"apps/v1"}]}]}`,
		"/api/v1": `{"resources":[{"name":"pods","kind":"Pod"},{"name":"pods/status","kind":"Pod"}]}`, "/apis/apps/v1": `{"resources":[{"kind":"Deployment"}]}`,
		"/apis/x/" + long: `{"resources":` + repeatJSON(`{"kind":"a"},{"kind":"b"},{"kind":"c"}`, 100) + `}`,
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[req.URL.Path])
	}))
	t.Cleanup(server.Close)
	to := connectServer(t.Context(), t, server)
	version, apis, err := charts.ReadCapabilities(t.Context(), to.discovery)
	if got := strings.Join(apis, " "); err != nil || version != "v1.37.2" || got != "v1 v1/Pod apps/v1 apps/v1/Deployment" {
		t.Errorf("%s, %s, %v", version, got, err)
	}
	answers["/apis"] = `{"groups":[{"versions":[{"groupVersion":"x/` + long + `"}]}]}`
	if _, _, err := charts.ReadCapabilities(t.Context(), to.discovery); err == nil || !strings.Contains(err.Error(), "their names have more than 256 KiB") {
		t.Errorf("a long group version: %v", err)
	}
	answers["/version"] = `{"gitVersion":"` + long + `"}`
	if _, _, err := charts.ReadCapabilities(t.Context(), to.discovery); err == nil || !strings.Contains(err.Error(), "it has 102400 bytes, and at most 128") {
		t.Errorf("a long version: %v", err)
	}
}
