// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/internal/azure"
)

type object = map[string]any

// arm is a fake with the recorded behavior of Azure: a write is Updating until polled, changes the
// etag on acceptance and at its end, and fails with 412 for another etag. Lists of scale sets and
// instances have no etags.
type arm struct {
	*httptest.Server
	mu      sync.Mutex
	of      map[string]object // by lower-case path
	pending map[string]bool   // unfinished writes
	calls   []string
	n       int
}

const group = "/subscriptions/s1/resourceGroups/rg/providers/"

func serve(t *testing.T) (*arm, *azure.MachineClient) {
	t.Helper()
	a := &arm{of: map[string]object{}, pending: map[string]bool{}}
	a.Server = httptest.NewServer(a)
	t.Cleanup(a.Close)
	endpoint, credential, err := azure.LocalEndpoint(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: a.Client(), Retry: azure.Retry{Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return a, azure.NewMachineClient(client)
}

// addResource adds a resource as JSON without ID, etag and state.
func (a *arm) addResource(t *testing.T, path, text string) {
	t.Helper()
	var body object
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	body["id"] = path
	body["properties"].(object)["provisioningState"] = "Succeeded"
	a.of[strings.ToLower(path)] = body
	a.changeEtag(strings.ToLower(path))
}

func (a *arm) changeEtag(path string) {
	a.n++
	a.of[path]["etag"] = fmt.Sprintf(`"%d"`, a.n)
}

func (a *arm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	path := strings.ToLower(r.URL.Path)
	if strings.Contains(path, "/operations/") {
		a.finishWrites()
		_, _ = io.WriteString(w, `{"status":"Succeeded"}`)
		return
	}
	a.calls = append(a.calls, r.Method+" "+strings.TrimPrefix(r.URL.Path, group))
	switch {
	case r.Method == http.MethodGet && a.of[path] != nil:
		answer(w, 200, a.of[path])
	case r.Method == http.MethodGet:
		a.list(w, path)
	case r.Method == http.MethodPost:
		a.upgrade(w, r, strings.TrimSuffix(path, "/manualupgrade"))
	case r.Header.Get("If-Match") != a.of[path]["etag"]:
		answer(w, 412, object{"error": object{"code": "PreconditionFailed", "message": "Etag provided in if-match header does not match."}})
	default:
		a.write(w, r, path)
	}
}

func (a *arm) list(w http.ResponseWriter, path string) {
	value := []object{}
	for _, key := range slices.Sorted(maps.Keys(a.of)) {
		if rest, ok := strings.CutPrefix(key, path+"/"); ok && !strings.Contains(rest, "/") {
			item := maps.Clone(a.of[key])
			if strings.Contains(key, "scalesets") {
				delete(item, "etag")
			}
			value = append(value, item)
		}
	}
	answer(w, 200, object{"value": value})
}

func (a *arm) write(w http.ResponseWriter, r *http.Request, path string) {
	var body object
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		answer(w, 400, object{"error": object{"code": "InvalidRequestContent", "message": err.Error()}})
		return
	}
	before := a.of[path]
	if r.Method == http.MethodPatch {
		merge(before, body)
		for key := range a.of { // they no longer have the latest model
			if strings.HasPrefix(key, path+"/") {
				a.of[key]["properties"].(object)["latestModelApplied"] = false
			}
		}
	} else {
		body["id"] = before["id"]
		a.of[path] = body
	}
	a.of[path]["properties"].(object)["provisioningState"] = "Updating"
	a.pending[path] = true
	a.changeEtag(path)
	a.taken(w)
	answer(w, 200, a.of[path])
}

func (a *arm) upgrade(w http.ResponseWriter, r *http.Request, path string) {
	var body struct {
		Instances []string `json:"instanceIds"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	profile := a.of[path]["properties"].(object)["virtualMachineProfile"].(object)["networkProfile"]
	for _, id := range body.Instances {
		properties := a.of[path+"/virtualmachines/"+id]["properties"].(object)
		properties["networkProfileConfiguration"], properties["latestModelApplied"] = profile, true
	}
	a.calls[len(a.calls)-1] += " " + strings.Join(body.Instances, ",")
	a.taken(w)
	w.Header().Set("Location", a.URL+"/subscriptions/s1/providers/Microsoft.Compute/locations/eastus/operations/8?monitor=true&api-version=2024-07-01")
	w.WriteHeader(http.StatusAccepted)
}

func (a *arm) taken(w http.ResponseWriter) {
	w.Header().Set("Azure-AsyncOperation", a.URL+"/subscriptions/s1/providers/Microsoft.Compute/locations/eastus/operations/7?p=1&api-version=2024-07-01")
	w.Header().Set("Retry-After", "0")
}

// finishWrites finishes pending operations.
func (a *arm) finishWrites() {
	for path := range a.pending {
		a.of[path]["properties"].(object)["provisioningState"] = "Succeeded"
		a.changeEtag(path)
	}
	clear(a.pending)
}

// merge applies a PATCH: objects are merged, other values replaced.
func merge(into, body object) {
	for key, value := range body {
		inner, isObject := value.(object)
		before, wasObject := into[key].(object)
		if isObject && wasObject {
			merge(before, inner)
		} else {
			into[key] = value
		}
	}
}

func answer(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// takeRequests returns the requests since the last call.
func (a *arm) takeRequests() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := strings.Join(a.calls, "\n")
	a.calls = nil
	return text
}
