// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir.dev/weir/internal/azure"
)

const base = "http://127.0.0.1:1"

const groupPrivateLinks = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/"

// armPrivateLinks is a fake with the recorded behavior of Azure: a write is Updating until polled, changes the
// etag on acceptance and at its end, and fails with 412 for another etag; a DELETE returns 202.
// Connections and subnets share the parent's etag.
type armPrivateLinks struct {
	mu      sync.Mutex
	of      map[string]object // by lower-case path
	pending map[string]bool   // unfinished operations; true for a DELETE
	calls   []string
	bodies  []string
	n       int
}

func servePrivateLinks(t *testing.T) (*armPrivateLinks, *azure.PrivateLinkClient) {
	t.Helper()
	a := &armPrivateLinks{of: map[string]object{}, pending: map[string]bool{}}
	endpoint, credential, err := azure.LocalEndpoint(base)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	return a, azure.NewPrivateLinkClient(client)
}

// addResource adds a resource as JSON without ID, etag and state.
func (a *armPrivateLinks) addResource(t *testing.T, path, text string) {
	t.Helper()
	var body object
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	body["id"], body["name"] = path, path[strings.LastIndex(path, "/")+1:]
	body["properties"].(object)["provisioningState"] = "Succeeded"
	a.of[strings.ToLower(path)] = body
	a.changeEtag(strings.ToLower(path))
}

// changeEtag changes the etag of a resource and its parent.
func (a *armPrivateLinks) changeEtag(path string) {
	a.n++
	for key, body := range a.of {
		if key == path || strings.HasPrefix(path, key+"/") || strings.HasPrefix(key, path+"/") {
			body["etag"] = fmt.Sprintf(`W/"%d"`, a.n)
		}
	}
}

// Do implements azure.Transport in memory, for virtual time.
func (a *armPrivateLinks) Do(req *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	a.ServeHTTP(rec, req)
	resp := rec.Result()
	resp.Request = req
	return resp, nil
}

func (a *armPrivateLinks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.ToLower(r.URL.Path)
	if strings.Contains(path, "/operations/") {
		a.finishWrites()
		_, _ = io.WriteString(w, `{"status":"Succeeded"}`)
		return
	}
	a.calls = append(a.calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, groupPrivateLinks))
	got := a.of[path]
	switch {
	case r.Method == http.MethodGet && got != nil:
		answer(w, 200, a.shown(path))
	case r.Method == http.MethodGet && strings.HasSuffix(path, "/privatelinkservices"):
		a.list(w, path)
	case r.Method == http.MethodDelete && got == nil && strings.Count(path, "/") == 8:
		w.WriteHeader(http.StatusNoContent)
	case r.Method != http.MethodPut && got == nil:
		answer(w, 404, object{"error": object{"code": "NotFound", "message": "Resource " + r.URL.Path + " not found.", "details": []any{}}})
	case got == nil && r.Header.Get("If-None-Match") != "*", got != nil && r.Header.Get("If-Match") != got["etag"]:
		answer(w, 412, object{"error": object{"code": "PreconditionFailed", "message": "Precondition failed."}})
	case r.Method == http.MethodDelete:
		a.pending[path] = true
		a.changeEtag(path)
		a.taken(w)
		w.Header().Set("Location", base+"/subscriptions/s1/providers/Microsoft.Network/locations/eastus/operations/7")
		w.WriteHeader(http.StatusAccepted)
	default:
		a.put(w, r, path)
	}
}

func (a *armPrivateLinks) put(w http.ResponseWriter, r *http.Request, path string) {
	text, _ := io.ReadAll(r.Body)
	a.bodies = append(a.bodies, string(text))
	var body object
	if err := json.Unmarshal(text, &body); err != nil {
		answer(w, 400, object{"error": object{"code": "InvalidRequestContent", "message": err.Error()}})
		return
	}
	status := http.StatusOK
	if a.of[path] == nil {
		status = http.StatusCreated
	}
	body["properties"].(object)["alias"] = "mine.guid.eastus.azure.privatelinkservice"
	body["id"] = r.URL.Path
	body["properties"].(object)["provisioningState"] = "Updating"
	a.of[path], a.pending[path] = body, false
	a.changeEtag(path)
	a.taken(w)
	answer(w, status, a.shown(path))
}

// shown returns a resource with its connections.
func (a *armPrivateLinks) shown(path string) object {
	text, _ := json.Marshal(a.of[path])
	var body object
	_ = json.Unmarshal(text, &body)
	var keys []string
	for key := range a.of {
		if strings.HasPrefix(key, path+"/privateendpointconnections/") {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		there, _ := body["properties"].(object)["privateEndpointConnections"].([]any)
		body["properties"].(object)["privateEndpointConnections"] = append(there, a.of[key])
	}
	return body
}

func (a *armPrivateLinks) list(w http.ResponseWriter, path string) {
	value := []object{}
	for key := range a.of {
		if rest, ok := strings.CutPrefix(key, path+"/"); ok && !strings.Contains(rest, "/") {
			value = append(value, a.shown(key))
		}
	}
	answer(w, 200, object{"value": value})
}

func (a *armPrivateLinks) taken(w http.ResponseWriter) {
	w.Header().Set("Azure-AsyncOperation", base+"/subscriptions/s1/providers/Microsoft.Network/locations/eastus/operations/7")
	w.Header().Set("Retry-After", "0")
}

// finishWrites finishes pending operations.
func (a *armPrivateLinks) finishWrites() {
	for path, deletes := range a.pending {
		a.changeEtag(path)
		if deletes {
			delete(a.of, path)
		} else {
			a.of[path]["properties"].(object)["provisioningState"] = "Succeeded"
		}
	}
	clear(a.pending)
}

// takeRequests returns the requests since the last call.
func (a *armPrivateLinks) takeRequests() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := strings.Join(a.calls, "\n")
	a.calls = nil
	return text
}
