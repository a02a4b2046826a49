// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu/schema"
)

const unknownProperty = "propertyOfTheFuture"

// lost has the writable properties that a read and a write lose today, by resource type. The list may
// only shrink.
var lost = map[string][]string{
	"Microsoft.Network/loadBalancers": {
		"properties.frontendIPConfigurations[].properties.ddosSettings",
		"properties.frontendIPConfigurations[].properties.ddosSettings.ddosCustomPolicy",
		"properties.frontendIPConfigurations[].properties.enableConnectionTracking",
		"properties.mode", "properties.propertyOfTheFuture",
	},
	"Microsoft.Network/loadBalancers/backendAddressPools": {"properties.propertyOfTheFuture"},
	"Microsoft.Network/publicIPAddresses": {
		"properties.ddosSettings.ddosCustomPolicy", "properties.ipTags[].firstPartyServiceTagId", "properties.propertyOfTheFuture",
	},
	"Microsoft.Network/networkSecurityGroups": {"properties.propertyOfTheFuture"},
}

// violations has what Weir sends today against the schema. The list may only shrink.
var violations = map[string][]string{
	"Microsoft.Compute/virtualMachineScaleSets": {
		"Microsoft.Compute/virtualMachineScaleSets properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations[].properties." +
			"ipConfigurations[].properties.publicIPAddressConfiguration.sku: unknown",
	},
}

// newest is an api-version that has every property.
const newest = "2026-12-01"

// A read and a write keep every property that a client may set, and one that neither the SDK nor the
// schema has.
func TestAReadAndAWriteKeepEveryProperty(t *testing.T) {
	place := lb.ResourceID{SubscriptionID: "s", ResourceGroup: "rg", Name: "x"}
	for _, row := range []struct {
		resourceType string
		edit         func(shown []byte) (any, error)
	}{
		{"Microsoft.Network/loadBalancers", func(shown []byte) (any, error) {
			read, err := parse[armnetwork.LoadBalancer](shown)
			if err != nil {
				return nil, err
			}
			sent, err := EncodeLoadBalancer(DecodeLoadBalancer(webPool.LoadBalancer, read), read, vnet)
			return &sent, err
		}},
		{"Microsoft.Network/loadBalancers/backendAddressPools", func(shown []byte) (any, error) {
			read, err := parse[armnetwork.BackendAddressPool](shown)
			if err != nil {
				return nil, err
			}
			sent, err := EncodePool(read, DecodePool(webPool, read).Addresses, vnet)
			return &sent, err
		}},
		{"Microsoft.Network/publicIPAddresses", func(shown []byte) (any, error) {
			read, err := parse[armnetwork.PublicIPAddress](shown)
			if err != nil {
				return nil, err
			}
			sent := EncodePublicIP(DecodePublicIP(place, read), read)
			return &sent, nil
		}},
		{"Microsoft.Network/networkSecurityGroups", func(shown []byte) (any, error) {
			read, err := parse[armnetwork.SecurityGroup](shown)
			if err != nil {
				return nil, err
			}
			sent := EncodeSecurityGroup(DecodeSecurityGroup(place, read), read)
			return &sent, nil
		}},
		{"Microsoft.Network/networkInterfaces", func(shown []byte) (any, error) {
			read, err := DecodeInterface(place, shown)
			if err != nil {
				return nil, err
			}
			return EncodeInterface(read)
		}},
		{"Microsoft.Network/privateLinkServices", func(shown []byte) (any, error) {
			read, err := DecodePrivateLinkService(place, shown)
			if err != nil {
				return nil, err
			}
			return EncodePrivateLinkService(read)
		}},
		{"Microsoft.Network/virtualNetworks/subnets", func(shown []byte) (any, error) {
			read, err := DecodeSubnet(place, shown)
			if err != nil {
				return nil, err
			}
			return EncodeSubnet(read)
		}},
		{"Microsoft.Compute/virtualMachineScaleSets", func(shown []byte) (any, error) {
			read, err := DecodeScaleSet(place, shown)
			if err != nil {
				return nil, err
			}
			return EncodeModel(read)
		}},
		{"Microsoft.Compute/virtualMachineScaleSets/virtualMachines", func(shown []byte) (any, error) {
			read, err := DecodeInstance(place, shown)
			if err != nil {
				return nil, err
			}
			return EncodeInstance(read)
		}},
	} {
		t.Run(row.resourceType, func(t *testing.T) {
			body := schema.Example(row.resourceType, leafOf)
			body["name"], body["id"] = "1", "/subscriptions/s/resourceGroups/rg/providers/"+row.resourceType+"/1"
			properties, _ := body["properties"].(map[string]any)
			properties[unknownProperty] = "x"
			shown, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			sent, err := row.edit(shown)
			if err != nil {
				t.Fatal(err)
			}
			kept := map[string]bool{}
			propertyPaths("", says(sent), kept)
			want := map[string]bool{}
			example := schema.Example(row.resourceType, leafOf)
			exampleProperties, _ := example["properties"].(map[string]any)
			exampleProperties[unknownProperty] = "x"
			propertyPaths("", says(example), want)
			prefix, isPatch := "", row.resourceType == "Microsoft.Compute/virtualMachineScaleSets"
			if isPatch { // what a PATCH leaves out stays, but it replaces lists
				prefix = "properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations[]"
			}
			document, _ := says(sent).(map[string]any)
			var broken []string
			for _, v := range schema.Check(row.resourceType, newest, isPatch, document) {
				if v.Fault != schema.Unknown || !strings.HasSuffix(v.Property, unknownProperty) {
					broken = append(broken, v.String())
				}
			}
			if diff := cmp.Diff(violations[row.resourceType], broken); diff != "" {
				t.Errorf("violations of the schema (-on the list +sent):\n%s", diff)
			}
			var missing []string
			for _, path := range slices.Sorted(maps.Keys(want)) {
				if !kept[path] && path != "name" && strings.HasPrefix(path, prefix) { // the URL has the name
					missing = append(missing, path)
				}
			}
			if diff := cmp.Diff(lost[row.resourceType], missing); diff != "" {
				t.Errorf("(-on the list +lost):\n%s", diff)
			}
		})
	}
}

// leafOf is a value of the JSON type of a property for which the schema has no values.
func leafOf(path string) any {
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

// propertyPaths adds the paths of a body to found, with [] for the items of lists. Tags, and what a reference
// holds, are no properties.
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

func parse[T any](shown []byte) (*T, error) {
	read := new(T)
	return read, json.Unmarshal(shown, read)
}
