// SPDX-License-Identifier: Apache-2.0

package takeover_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/patient"
)

// cloud is an emulated Azure that tracks connections.
type cloud struct {
	*armemu.Emulator
	url string

	mu          sync.Mutex // serializes requests, so that no state is missed
	connections connections
}

// newCloud returns a cloud with another controller's resources. Its caller has the shipped roles.
func newCloud(t *testing.T, remaining snapshotFolder, role *armemu.Role) *cloud {
	t.Helper()
	c := &cloud{Emulator: patient.Watch(t, armemu.New(armemu.Options{Seed: 1, Role: role}))}
	for _, r := range remaining.readResources(t) {
		if err := c.Put(r.ID, r.Body); err != nil {
			t.Fatal(err)
		}
	}
	c.updateConnections()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

// ServeHTTP updates the connections after every request.
func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Emulator.ServeHTTP(w, r)
	if r.Method != http.MethodGet {
		c.updateConnections()
	}
}

func (c *cloud) updateConnections() {
	rules := c.Flows(time.Time{}, time.Now())
	c.connections.update(possibleFlows(c.Snapshot(), ruleMembers(rules)), flowTargets(rules))
}

// takeDropped returns the connections dropped since the last call, and the number of open ones.
func (c *cloud) takeDropped() (dropped []flow, open int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	dropped, c.connections.dropped = c.connections.dropped, nil
	return dropped, len(c.connections.open)
}

// writesSince returns the write requests since a call number.
func (c *cloud) writesSince(since int) []string {
	var names []string
	for _, call := range c.Calls()[since:] {
		if call.Method != http.MethodGet {
			names = append(names, call.Method+" "+call.Path)
		}
	}
	return names
}

// resourceParts returns the resources and their parts by name, as text.
func (c *cloud) resourceParts(t *testing.T) map[string]string {
	t.Helper()
	var resources []struct {
		ID   string         `json:"id"`
		Body map[string]any `json:"body"`
	}
	if err := json.Unmarshal(c.Snapshot(), &resources); err != nil {
		t.Fatal(err)
	}
	parts := map[string]string{}
	put := func(name string, of map[string]any) {
		text, err := json.Marshal(normalizeJSON(of))
		if err != nil {
			t.Fatal(err)
		}
		parts[name] = string(text)
	}
	for _, r := range resources {
		name := path.Base(path.Dir(r.ID)) + "/" + path.Base(r.ID)
		properties, _ := r.Body["properties"].(map[string]any)
		for _, kind := range []string{"frontendIPConfigurations", "backendAddressPools", "loadBalancingRules", "probes", "securityRules"} {
			items, _ := properties[kind].([]any)
			delete(properties, kind)
			for _, item := range items {
				if item, ok := item.(map[string]any); ok {
					put(fmt.Sprintf("%s %s/%v", name, kind, item["name"]), item)
				}
			}
		}
		put(name, r.Body)
	}
	return parts
}

// normalizeJSON removes derived properties: etags, back references and list order.
func normalizeJSON(in any) any {
	switch in := in.(type) {
	case map[string]any:
		out := maps.Clone(in)
		for name, value := range in {
			out[name] = normalizeJSON(value)
		}
		for _, name := range []string{"etag", "provisioningState", "loadBalancingRules", "ipConfiguration", "backendIPConfigurations"} {
			delete(out, name)
		}
		if out["enableTcpReset"] == false {
			delete(out, "enableTcpReset") // the default, which not every server returns
		}
		return out
	case []any:
		out := make([]any, len(in))
		for i := range in {
			out[i] = normalizeJSON(in[i])
		}
		slices.SortFunc(out, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		return out
	}
	return in
}

// diffParts lists the changed parts: + new, ~ changed, - deleted.
func diffParts(before, after map[string]string) []string {
	var parts []string
	for name, got := range after {
		if old, ok := before[name]; !ok {
			parts = append(parts, "+ "+name)
		} else if old != got {
			parts = append(parts, "~ "+name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			parts = append(parts, "- "+name)
		}
	}
	slices.SortFunc(parts, func(a, b string) int { return strings.Compare(a[2:], b[2:]) })
	return parts
}
