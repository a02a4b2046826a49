// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// exchange may refer to earlier responses: ${version} is the resource version of the object's last
// response, ${first} of its first, ${uid} its UID, ${ns} the scenario's namespace.
type exchange struct {
	// A method and a path below the namespace. WATCH collects the events of one second. A leading
	// slash makes the path absolute.
	request string
	body    string
}

var contentTypes = map[string]string{
	"MERGE": "application/merge-patch+json", "JSON": "application/json-patch+json",
	"STRATEGIC": "application/strategic-merge-patch+json", "APPLY": "application/apply-patch+yaml",
}

var prefixes = map[string]string{
	"services": "/api/v1", "nodes": "/api/v1", "configmaps": "/api/v1", "events": "/api/v1", "namespaces": "/api/v1",
	"endpointslices": "/apis/discovery.k8s.io/v1", "leases": "/apis/coordination.k8s.io/v1", "backendpools": "/apis/weir.dev/v1alpha1",
}

// RunScenario runs a scenario in its own namespace and returns the responses without server-specific
// values.
func (sc Scenario) RunScenario(t *testing.T, cfg *rest.Config) []any {
	t.Helper()
	c := newSession(t, cfg, "compare-"+sc.FileName())
	var came []any
	for _, e := range sc.exchanges {
		came = append(came, c.runExchange(e))
	}
	// normalize as if read from a file
	text, err := json.Marshal(came)
	if err != nil {
		t.Fatal(err)
	}
	var second []any
	if err := json.Unmarshal(text, &second); err != nil {
		t.Fatal(err)
	}
	return second
}

func (sc Scenario) FileName() string {
	return strings.Trim(regexp.MustCompile("[^a-z]+").ReplaceAllString(strings.ToLower(sc.Name), "-"), "-")
}

func (sc Scenario) ReadRecorded(t *testing.T) []any {
	t.Helper()
	text, err := os.ReadFile(sc.RecordingPath())
	if err != nil {
		t.Fatal(err)
	}
	var values []any
	if err := json.Unmarshal(text, &values); err != nil {
		t.Fatalf("%s: %v", sc.RecordingPath(), err)
	}
	return values
}

func (sc Scenario) RecordingPath() string {
	return filepath.Join("testdata", "answers", sc.FileName()+".json")
}

func (sc Scenario) CompareAnswers(t *testing.T, want, got []any) {
	t.Helper()
	if len(want) != len(sc.exchanges) {
		t.Fatalf("%d answers are recorded of %d: record them anew", len(want), len(sc.exchanges))
	}
	for i, e := range sc.exchanges {
		before, current := leafValues("", want[i]), leafValues("", got[i])
		var diff []string
		for _, at := range slices.Sorted(maps.Keys(before)) {
			if current[at] != before[at] {
				diff = append(diff, "- "+at+" "+before[at])
			}
		}
		for _, at := range slices.Sorted(maps.Keys(current)) {
			if current[at] != before[at] {
				diff = append(diff, "+ "+at+" "+current[at])
			}
		}
		if len(diff) > 0 {
			t.Errorf("%d: %s %s (- recorded, + now)\n%s", i, e.request, e.body, strings.Join(diff, "\n"))
		}
	}
}

// By path.
func leafValues(at string, v any) map[string]string {
	values := map[string]string{}
	switch v := v.(type) {
	case map[string]any:
		for name, below := range v {
			maps.Copy(values, leafValues(at+"."+name, below))
		}
		if len(v) > 0 {
			return values
		}
	case []any:
		for i, below := range v {
			maps.Copy(values, leafValues(fmt.Sprintf("%s[%d]", at, i), below))
		}
		if len(v) > 0 {
			return values
		}
	}
	values[at] = fmt.Sprintf("%#v", v)
	return values
}

type clientSession struct {
	t      *testing.T
	client *http.Client
	host   string
	ns     string
	// responses by path
	last, first map[string]map[string]any
	names       map[string]string
	versions    map[string]string
}

func newSession(t *testing.T, cfg *rest.Config, ns string) *clientSession {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "compare/1"
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	c := &clientSession{
		t: t, client: client, host: strings.TrimSuffix(cfg.Host, "/"), ns: ns,
		last: map[string]map[string]any{}, first: map[string]map[string]any{}, names: map[string]string{}, versions: map[string]string{},
	}
	if !strings.HasPrefix(c.host, "http") {
		c.host = "https://" + c.host
	}
	c.runExchange(exchange{"POST /api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"${ns}"}}`})
	return c
}

func (c *clientSession) runExchange(e exchange) any {
	c.t.Helper()
	method, path, _ := strings.Cut(e.request, " ")
	resource, query, _ := strings.Cut(path, "?")
	text := c.fillPlaceholders(resource, e.body)
	watches := method == "WATCH"
	contentType := "application/json"
	switch {
	case watches:
		method = http.MethodGet
		query += "&watch=true&timeoutSeconds=1"
	case contentTypes[method] != "":
		contentType, method = contentTypes[method], http.MethodPatch
	}
	url := c.host + c.fullPath(resource)
	if query != "" {
		url += "?" + c.fillPlaceholders(resource, query)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, url, strings.NewReader(text))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	res, err := c.client.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		c.t.Fatal(err)
	}
	if watches && res.StatusCode == http.StatusOK {
		return c.readEvents(body)
	}
	return map[string]any{"code": res.StatusCode, "body": c.recordAnswer(method, resource, body)}
}

func (c *clientSession) fullPath(resource string) string {
	if strings.HasPrefix(resource, "/") {
		return c.fillPlaceholders(resource, resource)
	}
	kind, _, _ := strings.Cut(resource, "/")
	if kind == "nodes" || kind == "namespaces" {
		return prefixes[kind] + "/" + strings.ReplaceAll(resource, "${ns}", c.ns)
	}
	return prefixes[kind] + "/namespaces/" + c.ns + "/" + resource
}

// Without the subresource.
func objectPath(resource string) string {
	return strings.TrimSuffix(resource, "/status")
}

var placeholder = regexp.MustCompile(`\$\{(\w+)\}`)

func (c *clientSession) fillPlaceholders(resource, text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(about string) string {
		switch about {
		case "${ns}":
			return c.ns
		case "${version}":
			return metadataField(c.last[objectPath(resource)], "resourceVersion")
		case "${first}":
			return metadataField(c.first[objectPath(resource)], "resourceVersion")
		case "${uid}":
			return metadataField(c.last[objectPath(resource)], "uid")
		}
		c.t.Fatalf("%s asks for %s", resource, about)
		return ""
	})
}

func metadataField(o map[string]any, name string) string {
	m, _ := o["metadata"].(map[string]any)
	text, _ := m[name].(string)
	return text
}

func (c *clientSession) recordAnswer(method, resource string, body []byte) any {
	var o map[string]any
	if err := json.Unmarshal(body, &o); err != nil {
		return string(body)
	}
	if o["kind"] != "Status" && metadataField(o, "name") != "" {
		at := objectPath(resource)
		if method == http.MethodPost {
			at += "/" + metadataField(o, "name")
		}
		c.last[at] = o
		if c.first[at] == nil {
			c.first[at] = o
			if kind, _, _ := strings.Cut(resource, "/"); c.first[kind] == nil {
				c.first[kind] = o // enables a watch from the first object's version
			}
		}
	}
	return c.normalizeObject(o)
}

func (c *clientSession) readEvents(body []byte) []any {
	c.t.Helper()
	var values []any
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		var e struct {
			Type   string
			Object map[string]any
		}
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return values
		} else if err != nil {
			c.t.Fatalf("events: %v", err)
		}
		if e.Type == "BOOKMARK" && metadataField(e.Object, "name") == "" {
			if m, _ := e.Object["metadata"].(map[string]any); m["annotations"] == nil {
				continue // asynchronous
			}
		}
		if e.Type == "BOOKMARK" {
			e.Object["metadata"].(map[string]any)["resourceVersion"] = "of any kind"
		}
		values = append(values, map[string]any{"type": e.Type, "object": c.normalizeObject(e.Object)})
	}
}

func (c *clientSession) normalizeObject(o map[string]any) any {
	if o["kind"] == "Status" {
		return c.normalizeStatus(o)
	}
	if items, ok := o["items"].([]any); ok {
		for i := range items {
			items[i] = c.normalizeObject(items[i].(map[string]any))
		}
		return map[string]any{"kind": o["kind"], "items": items}
	}
	// Copy, to retain the original.
	text, _ := json.Marshal(o)
	next := map[string]any{}
	_ = json.Unmarshal(text, &next)
	m, _ := next["metadata"].(map[string]any)
	if m == nil {
		return next
	}
	c.normalizeMetadata(m, fmt.Sprint(next["kind"]))
	if spec, ok := next["spec"].(map[string]any); ok {
		c.normalizeSpec(spec)
	}
	return next
}

func (c *clientSession) normalizeStatus(o map[string]any) any {
	plain := map[string]any{"status": o["status"], "reason": o["reason"]}
	details, _ := o["details"].(map[string]any)
	plain["kind"], plain["name"] = details["kind"], details["name"]
	causes, _ := details["causes"].([]any)
	var status []string
	for _, cause := range causes {
		got := cause.(map[string]any)
		status = append(status, fmt.Sprint(got["reason"], " ", got["field"]))
	}
	slices.Sort(status)
	plain["causes"] = slices.Compact(status) // some are repeated
	return plain
}

func (c *clientSession) normalizeMetadata(m map[string]any, kind string) {
	if generated, ok := m["generateName"].(string); ok && strings.HasPrefix(fmt.Sprint(m["name"]), generated) {
		m["name"] = generated + "…"
	}
	at := kind + "/" + fmt.Sprint(m["name"])
	version, _ := m["resourceVersion"].(string)
	m["resourceVersion"] = "as before"
	if c.versions[at] != version {
		m["resourceVersion"] = "new"
	}
	c.versions[at] = version
	for _, name := range []string{"creationTimestamp", "deletionTimestamp"} {
		if m[name] != nil {
			m[name] = "some time"
		}
	}
	if uid, ok := m["uid"].(string); ok {
		m["uid"] = c.nameValue("uid", uid)
	}
	fields, _ := m["managedFields"].([]any)
	for _, f := range fields {
		f.(map[string]any)["time"] = "some time"
	}
	// The order depends on timestamps.
	slices.SortFunc(fields, func(a, b any) int { return strings.Compare(fieldOwner(a), fieldOwner(b)) })
}

func fieldOwner(fields any) string {
	f := fields.(map[string]any)
	return fmt.Sprint(f["manager"], " ", f["operation"], " ", f["subresource"])
}

func (c *clientSession) normalizeSpec(spec map[string]any) {
	if ip, ok := spec["clusterIP"].(string); ok && ip != "None" && ip != "" {
		spec["clusterIP"] = c.nameValue("ip", ip)
		for i, ip := range spec["clusterIPs"].([]any) {
			spec["clusterIPs"].([]any)[i] = c.nameValue("ip", ip.(string))
		}
	}
	if p, ok := spec["healthCheckNodePort"]; ok {
		spec["healthCheckNodePort"] = c.nameValue("port", fmt.Sprint(p))
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if n, ok := p.(map[string]any)["nodePort"]; ok {
			p.(map[string]any)["nodePort"] = c.nameValue("port", fmt.Sprint(n))
		}
	}
}

// In order of appearance.
func (c *clientSession) nameValue(sort, value string) string {
	at := sort + " " + value
	if c.names[at] == "" {
		n := 1
		for other := range c.names {
			if strings.HasPrefix(other, sort+" ") {
				n++
			}
		}
		c.names[at] = fmt.Sprintf("%s-%d", sort, n)
	}
	return c.names[at]
}

func replacePercent(text, by string) string { return strings.Replace(text, "%", by, 1) }
