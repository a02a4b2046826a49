// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// object is a Kubernetes object as decoded JSON.
type object = map[string]any

// apiResources are the API server's resources, by group and version.
var apiResources = map[string][][2]string{ // plural, kind
	"v1":                     {{"services", "Service"}, {"nodes", "Node"}, {"events", "Event"}, {"pods", "Pod"}},
	"apps/v1":                {{"deployments", "Deployment"}},
	"discovery.k8s.io/v1":    {{"endpointslices", "EndpointSlice"}},
	"coordination.k8s.io/v1": {{"leases", "Lease"}},
	"weir.dev/v1alpha1":      {{"backendpools", "BackendPool"}},
}

// recordedAPI serves the objects of a file as an API server, and /calls as Weir's leader.
type recordedAPI struct {
	t    *testing.T
	file atomic.Value // string; empty: no response
}

func serve(t *testing.T, file string) (*recordedAPI, *httptest.Server) {
	r := &recordedAPI{t: t}
	r.file.Store(file)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, server
}

func (r *recordedAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	file := r.file.Load().(string)
	if file == "" {
		http.Error(w, "overloaded", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if req.URL.Path == "/calls" {
		_, _ = w.Write(readFixture(r.t, "calls.jsonl"))
		return
	}
	if kind := map[string]string{"/apis/authentication.k8s.io/v1/tokenreviews": "TokenReview", "/apis/authorization.k8s.io/v1/subjectaccessreviews": "SubjectAccessReview"}[req.URL.Path]; kind != "" {
		body, _ := io.ReadAll(req.Body) // protobuf
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(object{
			"kind": kind, "apiVersion": group(req.URL.Path), "metadata": object{},
			"status": object{"authenticated": bytes.Contains(body, []byte(token)), "user": object{"username": "anna"}, "allowed": true},
		})
		return
	}
	if answer := discoveryDocument(req.URL.Path); answer != nil {
		_ = json.NewEncoder(w).Encode(answer)
		return
	}
	var objects []object
	if err := json.Unmarshal(readFixture(r.t, file), &objects); err != nil {
		r.t.Error(err)
	}
	group, parts := splitPath(req.URL.Path)
	if len(parts) == 0 { // an API that is not installed
		http.NotFound(w, req)
		return
	}
	namespace, plural, name := "", "", ""
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	plural = parts[0]
	if len(parts) > 1 {
		name = parts[1]
	}
	i := slices.IndexFunc(apiResources[group], func(k [2]string) bool { return k[0] == plural })
	if i < 0 {
		http.NotFound(w, req)
		return
	}
	kind := apiResources[group][i][1]
	items := []object{}
	for _, o := range objects {
		if o["kind"] == kind && (namespace == "" || fieldAt(o, "metadata.namespace") == namespace) && (name == "" || fieldAt(o, "metadata.name") == name) &&
			matchesSelector(o, req.URL.Query().Get("fieldSelector"), "") && matchesSelector(o, req.URL.Query().Get("labelSelector"), "metadata.labels") {
			items = append(items, o)
		}
	}
	switch {
	case name == "":
		_ = json.NewEncoder(w).Encode(object{"kind": kind + "List", "apiVersion": group, "metadata": object{"resourceVersion": "1"}, "items": items})
	case len(items) == 1:
		_ = json.NewEncoder(w).Encode(items[0])
	default:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404, "message": plural + " \"" + name + "\" not found"})
	}
}

// token is the token of a user with read access.
const token = "eyJ-anna"

// group returns the group and version of a path.
func group(path string) string {
	g, _ := splitPath(path)
	return g
}

// splitPath splits a path into group and version, and the rest.
func splitPath(path string) (group string, rest []string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if len(parts) < 3 { // of the leader
		return "", nil
	}
	if parts[0] == "api" {
		return parts[1], parts[2:]
	}
	return parts[1] + "/" + parts[2], parts[3:]
}

// discoveryDocument returns the discovery document of a path; nil for object paths.
func discoveryDocument(path string) any {
	switch path {
	case "/api":
		return object{"kind": "APIVersions", "versions": []string{"v1"}}
	case "/apis":
		var groups []object
		for group := range apiResources {
			if name, _, ok := strings.Cut(group, "/"); ok {
				version := object{"groupVersion": group, "version": group[len(name)+1:]}
				groups = append(groups, object{"name": name, "versions": []object{version}, "preferredVersion": version})
			}
		}
		return object{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	}
	group := strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/")
	if apiResources[group] == nil {
		return nil
	}
	var resources []object
	for _, k := range apiResources[group] {
		resources = append(resources, object{"name": k[0], "singularName": "", "kind": k[1], "namespaced": k[1] != "Node", "verbs": []string{"get", "list"}})
	}
	return object{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources}
}

// fieldAt returns a value of an object by dotted path.
func fieldAt(o object, path string) any {
	var v any = o
	for _, name := range strings.Split(path, ".") {
		o, _ := v.(object)
		v = o[name]
	}
	return v
}

// matchesSelector reports whether the fields below a path match all terms of "name=value,…".
func matchesSelector(o object, selector, below string) bool {
	for _, each := range strings.Split(selector, ",") {
		name, value, ok := strings.Cut(each, "=")
		if !ok {
			continue
		}
		current := fieldAt(o, name)
		if below != "" { // label names contain dots
			labels, _ := fieldAt(o, below).(object)
			current = labels[name]
		}
		if current != value {
			return false
		}
	}
	return true
}

// relativeTime matches a timestamp relative to the time of reading.
var relativeTime = regexp.MustCompile(`\bnow([+-][0-9hms.]+)(micro)?\b`)

// readFixture returns a file of testdata with its relative timestamps resolved.
func readFixture(t *testing.T, name string) []byte {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join("testdata", name)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	}
	now := time.Now().UTC()
	return relativeTime.ReplaceAllFunc(raw, func(b []byte) []byte {
		m := relativeTime.FindSubmatch(b)
		d, err := time.ParseDuration(string(m[1]))
		if err != nil {
			t.Errorf("%s: %s: %v", name, b, err)
		}
		if len(m[2]) > 0 {
			return []byte(now.Add(d).Format("2006-01-02T15:04:05.000000Z"))
		}
		return []byte(now.Add(d).Format(time.RFC3339))
	})
}
