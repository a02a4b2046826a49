// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu/schema"
)

const unknownProperty = "propertyOfTheFuture"

// newestVersion is an api-version with all properties.
const newestVersion = "2026-12-01"

// A read and a write retain every writable property, including one unknown to SDK and schema.
func TestAReadAndAWriteKeepEveryProperty(t *testing.T) {
	place := lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Name: "x"}
	for _, row := range []struct {
		resourceType string
		edit         func(shown Document) (any, error)
	}{
		{"Microsoft.Network/loadBalancers", func(shown Document) (any, error) {
			return encodeUnchanged(webPool.LoadBalancer, shown, DecodeLoadBalancer, encodeBalancer)
		}},
		{"Microsoft.Network/loadBalancers/backendAddressPools", func(shown Document) (any, error) { return encodeUnchanged(webPool, shown, DecodePool, encodePool) }},
		{"Microsoft.Network/publicIPAddresses", func(shown Document) (any, error) {
			return encodeUnchanged(place, shown, DecodePublicIP, EncodePublicIP)
		}},
		{"Microsoft.Network/networkSecurityGroups", func(shown Document) (any, error) {
			return encodeUnchanged(place, shown, DecodeSecurityGroup, EncodeSecurityGroup)
		}},
		{"Microsoft.Network/networkInterfaces", func(shown Document) (any, error) {
			return encodeUnchanged(place, shown, DecodeInterface, EncodeInterface)
		}},
		{"Microsoft.Network/privateLinkServices", func(shown Document) (any, error) {
			return encodeUnchanged(place, shown, DecodePrivateLinkService, EncodePrivateLinkService)
		}},
		{"Microsoft.Network/virtualNetworks/subnets", func(shown Document) (any, error) { return encodeUnchanged(place, shown, DecodeSubnet, EncodeSubnet) }},
		{"Microsoft.Compute/virtualMachineScaleSets", func(shown Document) (any, error) { return encodeUnchanged(place, shown, DecodeScaleSet, EncodeModel) }},
		{"Microsoft.Compute/virtualMachineScaleSets/virtualMachines", func(shown Document) (any, error) {
			return encodeUnchanged(place, shown, DecodeInstance, EncodeInstance)
		}},
	} {
		t.Run(row.resourceType, func(t *testing.T) {
			body := schema.Example(row.resourceType, exampleValue)
			body["name"], body["id"] = "1", "/subscriptions/s/resourceGroups/rg/providers/"+row.resourceType+"/1"
			properties, _ := body["properties"].(map[string]any)
			properties[unknownProperty] = "x"
			shown, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := row.edit(newDocument(string(shown)))
			if err != nil {
				t.Fatal(err)
			}
			kept := map[string]bool{}
			propertyPaths("", normalizeBody(sent), kept)
			want := map[string]bool{}
			example := schema.Example(row.resourceType, exampleValue)
			exampleProperties, _ := example["properties"].(map[string]any)
			exampleProperties[unknownProperty] = "x"
			propertyPaths("", normalizeBody(example), want)
			prefix := ""
			if row.resourceType == "Microsoft.Compute/virtualMachineScaleSets" { // absent properties are retained, but lists are replaced
				prefix = "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations[]"
			}
			document, _ := normalizeBody(sent).(map[string]any)
			var broken []string
			for _, v := range schema.Check(row.resourceType, newestVersion, false, document) {
				if v.Fault != schema.Unknown || !strings.HasSuffix(v.Property, unknownProperty) {
					broken = append(broken, v.String())
				}
			}
			if len(broken) > 0 {
				t.Errorf("violations of the schema: %q", broken)
			}
			var missing []string
			for _, path := range slices.Sorted(maps.Keys(want)) {
				if !kept[path] && path != "name" && strings.HasPrefix(path, prefix) { // the URL has the name
					missing = append(missing, path)
				}
			}
			if len(missing) > 0 {
				t.Errorf("lost: %q", missing)
			}
		})
	}
}

// exampleValue returns a value of the JSON type of a property without values in the schema.
func exampleValue(path string) any {
	name := path[strings.LastIndex(path, ".")+1:]
	switch {
	case name == "tags":
		return map[string]any{"a": "b"}
	case name == "ipAddress":
		return "10.0.0.4"
	case name == "priority" || name == "identifier" || name == "numberOfProbes" || name == "allocatedOutboundPorts" || name == "prefixLength" ||
		strings.HasSuffix(strings.ToLower(name), "port") || strings.HasSuffix(name, "InMinutes") || strings.HasSuffix(name, "InSeconds") ||
		strings.HasSuffix(name, "Threshold") || strings.Contains(name, "PortRangeStart") || strings.Contains(name, "PortRangeEnd") || name == "privateIPAddressPrefixLength":
		return 80
	case name == "primary" || name == "flushConnection" || name == "disableOutboundSnat" || strings.HasPrefix(name, "enable"):
		return true
	case name == "addressPrefix":
		return "10.0.0.0/24"
	case strings.HasSuffix(name, "Prefixes"):
		return []any{"10.0.0.0/24"}
	case name == "zones" || name == "fqdns" || name == "subscriptions" || strings.HasSuffix(name, "Servers") || strings.HasSuffix(name, "PortRanges"):
		return []any{"1"}
	case strings.HasSuffix(name, "AddressPools") || strings.HasSuffix(name, "FrontendIpConfigurations") || strings.HasSuffix(name, "SecurityGroups") ||
		strings.HasSuffix(name, "InboundNatRules") || strings.HasSuffix(name, "InboundNatPools") || name == "networkInterfaces" || name == "virtualNetworkTaps":
		return []any{map[string]any{"id": "/x/" + name}}
	case name == "subnet" || strings.HasPrefix(name, "publicIP") || strings.HasSuffix(name, "PublicIPAddress") || name == "networkSecurityGroup" || name == "privateLinkService" || name == "routeTable" || name == "natGateway":
		return map[string]any{"id": "/x/" + name}
	}
	return "x"
}

// propertyPaths adds the property paths of a body to found, with [] for list items. Tags and the
// contents of references are skipped.
func propertyPaths(at string, v any, found map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, item := range v {
			path := strings.TrimPrefix(at+"."+key, ".")
			if key != "id" && key != "a" {
				found[path] = true
			}
			propertyPaths(path, item, found)
		}
	case []any:
		for _, item := range v {
			propertyPaths(at+"[]", item, found)
		}
	}
}
