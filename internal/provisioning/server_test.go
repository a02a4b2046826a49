// SPDX-License-Identifier: Apache-2.0

package provisioning

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// fakeServer is a minimal API server: objects by path, with apply, get and delete.
type fakeServer struct {
	warning string

	mu      sync.Mutex
	objects map[string]map[string]any
	deleted []string
}

func (s *fakeServer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Warning", s.warning)
	switch path := req.URL.Path; {
	case path == "/version":
		writeJSON(w, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2"})
	case path == "/api":
		writeJSON(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/apis":
		writeJSON(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case path == "/api/v1":
		writeJSON(w, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "configmaps", Kind: "ConfigMap", Namespaced: true}, {Name: "secrets", Kind: "Secret", Namespaced: true},
			{Name: "pods", Kind: "Pod", Namespaced: true}, {Name: "nodes", Kind: "Node"},
		}})
	case req.Method == http.MethodPatch:
		s.applyObject(w, req)
	case s.objects[path] == nil:
		w.WriteHeader(http.StatusNotFound)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
	case req.Method == http.MethodDelete:
		s.deleted = append(s.deleted, path[strings.LastIndex(path, "/")+1:])
		delete(s.objects, path)
		writeJSON(w, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"})
	default:
		writeJSON(w, s.objects[path])
	}
}

// applyObject keeps the object's status, which controllers write.
func (s *fakeServer) applyObject(w http.ResponseWriter, req *http.Request) {
	var object map[string]any
	if err := json.NewDecoder(req.Body).Decode(&object); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if got := s.objects[req.URL.Path]; got != nil {
		object["status"] = got["status"]
	}
	if of, ok := object["metadata"].(map[string]any); ok {
		of["uid"], of["resourceVersion"] = req.URL.Path, "1"
		of["managedFields"] = []map[string]any{{"manager": req.URL.Query().Get("fieldManager"), "operation": "Apply"}}
	}
	if s.objects == nil {
		s.objects = map[string]map[string]any{}
	}
	s.objects[req.URL.Path] = object
	writeJSON(w, object)
}

func writeJSON(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func (s *fakeServer) newTarget(ctx context.Context, t *testing.T) *target {
	t.Helper()
	server := httptest.NewTLSServer(s)
	t.Cleanup(server.Close)
	return connectServer(ctx, t, server)
}

func connectServer(ctx context.Context, t *testing.T, server *httptest.Server) *target {
	t.Helper()
	r := &Reconciler{Config: Config{API: &rest.Config{}}}
	cfg := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	to, err := r.newTarget(ctx, cfg, "edge", "default", dialPolicy{isLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(to.close)
	return to
}
