// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu/schema"
)

const (
	balancer = "Microsoft.Network/loadBalancers"
	pool     = balancer + "/backendAddressPools"
	set      = "Microsoft.Compute/virtualMachineScaleSets"
)

func TestCheck(t *testing.T) {
	probe := func(properties string) string {
		return `{"properties":{"probes":[{"name":"p","properties":{"port":80,"protocol":"Tcp"` + properties + `}}]}}`
	}
	publicIPOf := func(properties string) string {
		return `{"properties":{"virtualMachineProfile":{"networkProfile":{"networkInterfaceConfigurations":[{"name":"n","properties":{"ipConfigurations":[` +
			`{"name":"i","properties":{"publicIPAddressConfiguration":{"name":"p"` + properties + `}}}]}}]}}}}`
	}
	for _, row := range []struct {
		name, resourceType, version, body string
		patch                             bool
		want                              string
	}{
		{"complete", balancer, "2025-05-01", probe(``), false, ""},
		{"any case of the type", strings.ToUpper(balancer), "2025-05-01", probe(``), false, ""},
		{"unknown type", "Microsoft.Network/routeTables", "2025-05-01", `{"x":1}`, false, ""},
		{"unknown", balancer, "2025-05-01", probe(`,"color":"red"`), false, "properties.probes[].properties.color: unknown"},
		{"null is unknown as well", balancer, "2025-05-01", `{"color":null}`, false, "color: unknown"},
		{"other case", balancer, "2025-05-01", probe(`,"Port":80`), false, "properties.probes[].properties.Port: unknown"},
		{"read-only", balancer, "2025-05-01", probe(`,"provisioningState":"Succeeded"`), false, "properties.probes[].properties.provisioningState: read-only"},
		{"null of a read-only one", balancer, "2025-05-01", `{"etag":null}`, false, ""},
		{"accepted", pool, "2025-05-01", `{"id":"/x","properties":{"loadBalancerBackendAddresses":[{"name":"a","properties":{"networkInterfaceIPConfiguration":{"id":"/nic"}}}]}}`, false, ""},
		{"etag is not accepted", pool, "2025-05-01", `{"etag":"W/\"1\""}`, false, "etag: read-only"},
		{"value", balancer, "2025-05-01", probe(`,"noHealthyBackendsBehavior":"Up"`), false, "properties.probes[].properties.noHealthyBackendsBehavior: value"},
		{"no text", balancer, "2025-05-01", `{"sku":{"name":1}}`, false, "sku.name: value"},
		{"no object", balancer, "2025-05-01", `{"sku":"Standard"}`, false, "sku: value"},
		{"no list", balancer, "2025-05-01", `{"properties":{"probes":{}}}`, false, "properties.probes: value"},
		{"list of no objects", balancer, "2025-05-01", `{"properties":{"probes":["a"]}}`, false, "properties.probes[]: value"},
		{"required", balancer, "2025-05-01", `{"properties":{"probes":[{"name":"p","properties":{"port":80}}]}}`, false, "properties.probes[].properties.protocol: required"},
		{"null of a required one", balancer, "2025-05-01", strings.Replace(probe(``), "80", "null", 1), false, "properties.probes[].properties.port: required"},
		{"the name is in the URL", set, "2024-07-01", `{}`, false, "location: required"},
		{"newer", balancer, "2024-03-01", probe(`,"noHealthyBackendsBehavior":"AllProbedUp"`), false, "properties.probes[].properties.noHealthyBackendsBehavior: newer"},
		{"new enough", balancer, "2024-05-01", probe(`,"noHealthyBackendsBehavior":"AllProbedUp"`), false, ""},
		{"mode", balancer, "2025-05-01", `{"properties":{"mode":"Advanced"}}`, false, "properties.mode: newer"},
		{"mode of its version", balancer, "2025-09-01", `{"properties":{"mode":"Advanced"}}`, false, ""},
		{"embedded resources are cut off", balancer, "2025-05-01", `{"properties":{"frontendIPConfigurations":[{"name":"f","properties":{"publicIPAddress":{"id":"/ip","properties":{"x":1}}}}]}}`, false, ""},
		{"PATCH of tags", balancer, "2025-05-01", `{"tags":{"a":"b"}}`, true, ""},
		{"PATCH of anything else", balancer, "2025-05-01", `{"tags":{},"location":"eastus"}`, true, "location: unknown"},
		{"PATCH needs nothing", set, "2024-07-01", `{"properties":{"singlePlacementGroup":true}}`, true, ""},
		{"PATCH of a public IP's SKU", set, "2024-07-01", publicIPOf(`,"sku":{"name":"Standard"}`), true, "publicIPAddressConfiguration.sku: unknown"},
		{"PATCH of a public IP's tags", set, "2024-07-01", publicIPOf(`,"properties":{"ipTags":[],"publicIPAddressVersion":"IPv4"}`), true, "properties.ipTags: unknown publicIPAddressConfiguration.properties.publicIPAddressVersion: unknown"},
		{"PUT of a public IP's SKU", set, "2024-07-01", strings.Replace(publicIPOf(`,"sku":{"name":"Standard"}`), "{", `{"location":"eastus",`, 1), false, ""},
	} {
		var body map[string]any
		if err := json.Unmarshal([]byte(row.body), &body); err != nil {
			t.Fatal(row.name, err)
		}
		var found []string
		for _, v := range schema.Check(row.resourceType, row.version, row.patch, body) {
			found = append(found, strings.TrimPrefix(v.String(), v.Type+" "))
		}
		if got := strings.Join(found, " "); !strings.HasSuffix(stripSet(got), row.want) || (row.want == "") != (got == "") || len(found) != strings.Count(row.want, ": ") {
			t.Errorf("%s: got %q, want %q", row.name, got, row.want)
		}
	}
}

// stripSet shortens the paths into the model of a scale set.
func stripSet(s string) string {
	return strings.ReplaceAll(s, "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations[].properties.ipConfigurations[].properties.", "")
}

// Each needs evidence.
func TestAccepted(t *testing.T) {
	want := []string{
		"id", "properties.loadBalancerBackendAddresses[].properties.networkInterfaceIPConfiguration",
		"properties.backendAddressPools[].properties.loadBalancerBackendAddresses[].properties.networkInterfaceIPConfiguration",
	}
	if got := schema.AcceptedReadOnly(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Example satisfies the newest api-version, and Writable removes all violations.
func TestExampleAndWritable(t *testing.T) {
	leaf := func(string) any { return "x" }
	for _, resourceType := range []string{balancer, pool, set, "Microsoft.Network/publicIPAddresses", "Microsoft.Network/networkSecurityGroups"} {
		body := schema.Example(resourceType, leaf)
		if found := schema.Check(resourceType, "2026-12-01", false, body); len(found) > 0 {
			t.Errorf("%s: %v", resourceType, found)
		}
		body["etag"] = "1"
		properties, _ := body["properties"].(map[string]any)
		properties["provisioningState"] = "Succeeded"
		sent := schema.Writable(resourceType, body)
		if found := schema.Check(resourceType, "2026-12-01", false, sent); len(found) > 0 {
			t.Errorf("%s: writable: %v", resourceType, found)
		}
		if body["etag"] != "1" || sent["etag"] != nil {
			t.Errorf("%s: etag %v, sent %v", resourceType, body["etag"], sent["etag"])
		}
	}
}
