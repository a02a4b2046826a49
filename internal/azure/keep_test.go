// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/lab/armemu/schema"
)

// fakeStore is a fake Azure with one resource. It shows the properties of the request's api-version,
// rejects writes with an older api-version than a property requires, and replaces the resource
// otherwise.
type fakeStore struct {
	kind, id string
	body     map[string]any
	broken   []string // violations of the schema
}

// unknown is a property that neither schema nor SDK has; all writable objects have it.
const unknown = "propertyOfTheFuture"

func (s *fakeStore) Do(req *http.Request) (*http.Response, error) {
	version := req.URL.Query().Get("api-version")
	if req.Method == http.MethodGet {
		return s.handleRequest(req, http.StatusOK, s.visibleResource(version))
	}
	text, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, err
	}
	isPatch := req.Method == http.MethodPatch
	for _, v := range schema.Check(s.kind, version, isPatch, body) {
		if v.Fault != schema.Unknown || !strings.HasSuffix(v.Property, unknown) {
			s.broken = append(s.broken, v.String())
		}
	}
	if newest := newestOf(s.kind, version, s.body); newest != "" {
		return s.handleRequest(req, http.StatusBadRequest, map[string]any{"error": map[string]any{
			"code":    "UpdateOnResourceNotAllowedWithApiVersion",
			"message": fmt.Sprintf("Resource %s cannot be updated using API version %s since it uses the property p which has been set using a higher API version %s.", s.id, version, newest),
		}})
	}
	if isPatch || s.kind == "Microsoft.Compute/virtualMachineScaleSets" {
		body = mergePatch(s.body, body)
	}
	s.body = body
	return s.handleRequest(req, http.StatusOK, s.visibleResource(version))
}

// newestOf returns the newest api-version that a property of body requires, if newer than version.
func newestOf(kind, version string, body map[string]any) string {
	newest := ""
	for {
		v, found := schema.FindNewer(kind, max(version, newest), body)
		if !found {
			return newest
		}
		newest = v.Detail
	}
}

// mergePatch applies a PATCH, or a PUT of a scale set: lists are replaced, absent properties retained.
func mergePatch(before, patch map[string]any) map[string]any {
	next := maps.Clone(before)
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		old, wasObject := next[key].(map[string]any)
		if isObject && wasObject {
			value = mergePatch(old, inner)
		}
		next[key] = value
	}
	return next
}

// visibleResource is the written resource with read-only properties.
func (s *fakeStore) visibleResource(version string) map[string]any {
	visible, _ := schema.RemoveNewer(s.kind, version, withReadOnly(s.body, schema.ExampleResponse(s.kind, exampleOf))).(map[string]any)
	next := maps.Clone(visible)
	next["id"], next["name"], next["etag"] = s.id, s.id[strings.LastIndexByte(s.id, '/')+1:], `W/"1"`
	properties, _ := next["properties"].(map[string]any)
	properties["provisioningState"] = "Succeeded"
	return next
}

// withReadOnly adds read-only properties to a body and its parts.
func withReadOnly(body, shown any) any {
	switch current := body.(type) {
	case map[string]any:
		of, _ := shown.(map[string]any)
		next := maps.Clone(current)
		for key, value := range of {
			if _, ok := current[key]; ok {
				value = withReadOnly(current[key], value)
			}
			next[key] = value
		}
		return next
	case []any:
		of, _ := shown.([]any)
		if len(of) == 0 {
			return current
		}
		next := slices.Clone(current)
		for i := range next {
			next[i] = withReadOnly(next[i], of[0])
		}
		return next
	}
	return body
}

func (s *fakeStore) handleRequest(req *http.Request, status int, body any) (*http.Response, error) {
	text, err := json.MarshalIndent(body, "", "\t")
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status), Request: req, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(text)),
	}, err
}

func copyOf(v map[string]any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var next map[string]any
	if err := json.Unmarshal(text, &next); err != nil {
		panic(err)
	}
	return next
}

// fullResource is a resource with all writable properties and one unknown property per object.
func fullResource(kind string) map[string]any {
	body := copyOf(schema.Example(kind, exampleOf))
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, inner := range v {
				add(inner)
			}
			if v["id"] == nil || v["properties"] != nil {
				v[unknown] = map[string]any{"n": json.Number("12345678901234567890").String(), "list": []any{1.5, nil, true}}
			}
		case []any:
			for _, item := range v {
				add(item)
			}
		}
	}
	tags := body["tags"]
	delete(body, "tags")
	add(body["properties"])
	if tags != nil {
		body["tags"] = map[string]any{"a": "b"}
	}
	return body
}

// exampleOf returns a value of the JSON type of a property without values in the schema.
func exampleOf(path string) any {
	name := path[strings.LastIndex(path, ".")+1:]
	has := func(suffixes ...string) bool {
		return slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
	}
	switch {
	case name == "ipAddress":
		return "10.0.0.4"
	case name == "tags":
		return map[string]any{"a": "b"}
	case name == "priority" || name == "identifier" || name == "numberOfProbes" || name == "allocatedOutboundPorts" || has("Length", "port", "Port", "InMinutes", "InSeconds", "Threshold", "RangeStart", "RangeEnd"):
		return 80
	case name == "primary" || name == "flushConnection" || name == "disableOutboundSnat" || strings.HasPrefix(name, "enable"):
		return true
	case name == "latestModelApplied":
		return true
	case name == "privateEndpoint" || name == "virtualMachine" || name == "ipConfiguration" || name == "networkInterfaceIPConfiguration" || name == "backendIPConfiguration":
		return map[string]any{"id": "/x/" + name}
	case slices.Contains([]string{"backendIPConfigurations", "subnets", "flowLogs", "ipConfigurations", "privateEndpoints", "outboundRules", "loadBalancingRules"}, name):
		return []any{map[string]any{"id": "/x/" + name}}
	case name == "addressPrefix":
		return "10.0.0.0/24"
	case has("Prefixes"):
		return []any{"10.0.0.0/24"}
	case name == "zones" || name == "fqdns" || name == "subscriptions" || has("Servers", "PortRanges"):
		return []any{"1"}
	case has("AddressPools", "FrontendIpConfigurations", "SecurityGroups", "InboundNatRules", "InboundNatPools", "networkVirtualTaps", "virtualNetworkTaps", "networkInterfaces"):
		return []any{map[string]any{"id": "/x/" + name}}
	case name == "subnet" || strings.HasPrefix(name, "publicIP") || has("PublicIPAddress") || name == "networkSecurityGroup" || name == "privateLinkService" || name == "routeTable" || name == "natGateway":
		return map[string]any{"id": "/x/" + name}
	}
	return "x"
}

// Properties set by other tools, in any object and with any api-version, survive a write by Weir,
// and Weir sends only what the schema allows.
func TestAWriteKeepsWhatOthersHaveSet(t *testing.T) {
	const network, compute = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/", "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Compute/"
	at := func(kind, name string) lb.ResourceID {
		return lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: kind, Name: name}
	}
	pool := lb.PoolID{LoadBalancer: kubernetes, Name: "p"}
	for _, tt := range []struct {
		kind, id string
		change   func(context.Context, *azure.Client) error
		changed  []string // changed paths
	}{
		{"Microsoft.Network/loadBalancers", network + "loadBalancers/kubernetes", func(ctx context.Context, c *azure.Client) error {
			b, err := c.GetLoadBalancer(ctx, kubernetes)
			if err != nil {
				return err
			}
			b.Rules[0].IdleMinutes = 30
			_, err = c.PutLoadBalancer(ctx, b)
			return err
		}, []string{"properties.loadBalancingRules[0].properties.idleTimeoutInMinutes"}},
		{"Microsoft.Network/loadBalancers/backendAddressPools", network + "loadBalancers/kubernetes/backendAddressPools/p", func(ctx context.Context, c *azure.Client) error {
			p, err := c.GetPool(ctx, pool)
			if err != nil {
				return err
			}
			p.Addresses[0].AdminState = lb.Down
			_, err = c.PutPool(ctx, p)
			return err
		}, []string{"properties.loadBalancerBackendAddresses[0].properties.adminState"}},
		{"Microsoft.Network/publicIPAddresses", network + "publicIPAddresses/ip", func(ctx context.Context, c *azure.Client) error {
			ip, err := c.GetPublicIP(ctx, at(lb.TypePublicIP, "ip"))
			if err != nil {
				return err
			}
			ip.DNSLabel = "another"
			_, err = c.PutPublicIP(ctx, ip)
			return err
		}, []string{"properties.dnsSettings.domainNameLabel", "properties.dnsSettings.fqdn"}},
		{"Microsoft.Network/networkSecurityGroups", network + "networkSecurityGroups/nsg", func(ctx context.Context, c *azure.Client) error {
			g, err := c.GetSecurityGroup(ctx, at(lb.TypeSecurityGroup, "nsg"))
			if err != nil {
				return err
			}
			g.Rules[0].Priority = 501
			_, err = c.PutSecurityGroup(ctx, g)
			return err
		}, []string{"properties.securityRules[0].properties.priority"}},
		{"Microsoft.Network/networkInterfaces", network + "networkInterfaces/nic", func(ctx context.Context, c *azure.Client) error {
			i, err := azure.NewMachineClient(c).GetInterface(ctx, at(lb.TypeNetworkInterface, "nic"))
			if err != nil {
				return err
			}
			i.IPConfigurations[0].Pools = append(i.IPConfigurations[0].Pools, "/another")
			_, err = azure.NewMachineClient(c).PutInterface(ctx, i)
			return err
		}, []string{"properties.ipConfigurations[0].properties.loadBalancerBackendAddressPools"}},
		{"Microsoft.Network/privateLinkServices", network + "privateLinkServices/pls", func(ctx context.Context, c *azure.Client) error {
			p, err := azure.NewPrivateLinkClient(c).Get(ctx, at(lb.TypePrivateLinkService, "pls"))
			if err != nil {
				return err
			}
			p.FQDNs = []string{"another"}
			_, err = azure.NewPrivateLinkClient(c).Put(ctx, p)
			return err
		}, []string{"properties.fqdns"}},
		{"Microsoft.Network/virtualNetworks/subnets", network + "virtualNetworks/v/subnets/nodes", func(ctx context.Context, c *azure.Client) error {
			s, err := azure.NewPrivateLinkClient(c).GetSubnet(ctx, at(lb.TypeVirtualNetwork, "v"), "nodes")
			if err != nil {
				return err
			}
			_, err = azure.NewPrivateLinkClient(c).OpenSubnet(ctx, s)
			return err
		}, []string{"properties.privateLinkServiceNetworkPolicies"}},
		{"Microsoft.Compute/virtualMachineScaleSets", compute + "virtualMachineScaleSets/blue", func(ctx context.Context, c *azure.Client) error {
			s, err := azure.NewMachineClient(c).GetScaleSet(ctx, at(lb.TypeScaleSet, "blue"))
			if err != nil {
				return err
			}
			s.Interfaces[0].IPConfigurations[0].Pools = append(s.Interfaces[0].IPConfigurations[0].Pools, "/another")
			_, err = azure.NewMachineClient(c).PatchModel(ctx, s)
			return err
		}, []string{"properties.virtualMachineProfile.networkProfile.networkInterfaceConfigurations[0].properties.ipConfigurations[0].properties.loadBalancerBackendAddressPools"}},
		{"Microsoft.Compute/virtualMachineScaleSets/virtualMachines", compute + "virtualMachineScaleSets/blue/virtualMachines/1", func(ctx context.Context, c *azure.Client) error {
			i, err := azure.NewMachineClient(c).GetInstance(ctx, at(lb.TypeScaleSet, "blue"), "1")
			if err != nil {
				return err
			}
			i.Interfaces[0].IPConfigurations[0].Pools = append(i.Interfaces[0].IPConfigurations[0].Pools, "/another")
			_, err = azure.NewMachineClient(c).PutInstance(ctx, i)
			return err
		}, []string{"properties.networkProfileConfiguration.networkInterfaceConfigurations[0].properties.ipConfigurations[0].properties.loadBalancerBackendAddressPools"}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			holds := &fakeStore{kind: tt.kind, id: tt.id, body: fullResource(tt.kind)}
			before := flattenBody(holds.body)
			if err := tt.change(t.Context(), clientOf(t, holds)); err != nil {
				t.Fatal(err)
			}
			after := flattenBody(holds.body)
			for _, path := range tt.changed {
				if before[path] == after[path] {
					t.Errorf("%s is not changed", path)
				}
				delete(before, path)
				delete(after, path)
			}
			for _, key := range []string{"id", "name"} { // the URL has them
				delete(before, key)
				delete(after, key)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("(-set by others +after the write):\n%s", diff)
			}
			if len(holds.broken) > 0 {
				t.Errorf("violations of the schema: %q", holds.broken)
			}
		})
	}
}

func clientOf(t *testing.T, transport azure.Transport) *azure.Client {
	t.Helper()
	endpoint, credential, err := azure.LocalEndpoint("http://127.0.0.1:8080")
	if err != nil {
		t.Fatal(err)
	}
	client, err := azure.New(azure.Options{Endpoint: endpoint, Credential: credential, Transport: transport, VirtualNetworkID: vnetID})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// flattenBody flattens a body into paths and values; a list without objects is one value.
func flattenBody(body map[string]any) map[string]string {
	names := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, item := range v {
				walk(strings.TrimPrefix(path+"."+key, "."), item)
			}
		case []any:
			if first, ok := first(v).(map[string]any); !ok || first["properties"] == nil && first[unknown] == nil {
				names[path] = fmt.Sprint(v)
				return
			}
			for i, item := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), item)
			}
		default:
			names[path] = fmt.Sprint(v)
		}
	}
	walk("", body)
	return names
}

func first(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
