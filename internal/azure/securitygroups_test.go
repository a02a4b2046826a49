// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

var groupOfNodes = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypeSecurityGroup, Name: "nsg"}

// richSecurityGroup has rules of users and of cloud-provider-azure.
const richSecurityGroup = `{
  "name": "nsg", "id": "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/networkSecurityGroups/nsg", "etag": "W/\"e1\"",
  "type": "Microsoft.Network/networkSecurityGroups", "location": "eastus", "tags": {"team": "net"},
  "properties": {
    "provisioningState": "Succeeded", "resourceGuid": "0-1", "flushConnection": true,
    "securityRules": [
      {"name": "ssh", "id": "/ssh", "etag": "W/\"e1\"", "type": "t", "properties": {"provisioningState": "Succeeded", "description": "for us", "access": "Deny",
        "direction": "Inbound", "priority": 100, "protocol": "*", "sourceAddressPrefix": "*", "sourceAddressPrefixes": [], "destinationAddressPrefix": "VirtualNetwork",
        "sourcePortRange": "*", "destinationPortRange": "22", "destinationPortRanges": []}},
      {"name": "k8s-azure-lb_allow_IPv4_x", "id": "/x", "properties": {"access": "Allow", "direction": "Inbound", "priority": 500, "protocol": "Tcp",
        "sourceAddressPrefixes": ["10.0.0.0/8", "192.0.2.0/24"], "destinationAddressPrefixes": ["20.0.0.1", "20.0.0.2"], "sourcePortRange": "*", "destinationPortRanges": ["80"]}},
      {"name": "asg", "properties": {"access": "Allow", "direction": "Outbound", "priority": 500, "protocol": "Udp", "sourceAddressPrefix": "Internet",
        "destinationApplicationSecurityGroups": [{"id": "/asg"}], "sourcePortRange": "*", "destinationPortRange": "53"}}],
    "defaultSecurityRules": [{"name": "AllowVnetInBound"}], "subnets": [{"id": "/subnet"}], "networkInterfaces": [{"id": "/a"}, {"id": "/b"}], "flowLogs": [{"id": "/f"}]
  }}`

func readSecurityGroup(t *testing.T, body string) lb.SecurityGroup {
	t.Helper()
	g, err := newClient(t, &fakeARM{answer: replySequence(newReply(200, body))}).GetSecurityGroup(context.WithoutCancel(t.Context()), groupOfNodes)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestASecurityGroupIsRead(t *testing.T) {
	names := []string{lb.Any}
	want := lb.SecurityGroup{ID: groupOfNodes, Etag: `W/"e1"`, Provisioning: lb.Succeeded, Subnets: 1, Interfaces: 2, Rules: []lb.SecurityRule{
		{Name: "ssh", Priority: 100, Direction: lb.Inbound, Access: lb.Deny, Protocol: lb.Any, Sources: names, Destinations: []string{"VirtualNetwork"}, SourcePorts: names, DestinationPorts: []string{"22"}},
		{Name: "k8s-azure-lb_allow_IPv4_x", Priority: 500, Direction: lb.Inbound, Access: lb.Allow, Protocol: "Tcp", Sources: []string{"10.0.0.0/8", "192.0.2.0/24"}, Destinations: []string{"20.0.0.1", "20.0.0.2"}, SourcePorts: names, DestinationPorts: []string{"80"}},
		{Name: "asg", Priority: 500, Direction: lb.Outbound, Access: lb.Allow, Protocol: "Udp", Sources: []string{"Internet"}, SourcePorts: names, DestinationPorts: []string{"53"}, Grouped: true},
	}}
	if diff := cmp.Diff(want, readSecurityGroup(t, richSecurityGroup), cmpopts.IgnoreFields(lb.SecurityGroup{}, "Origin"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A write sends the changes, and everything else as it was.
func TestAChangeOfASecurityGroup(t *testing.T) {
	const rules = "properties.securityRules."
	tests := []struct {
		name   string
		change func(*lb.SecurityGroup)
		want   map[string]string
		adds   string
	}{
		{"nothing", func(*lb.SecurityGroup) {}, nil, ""},
		{"another destination", func(g *lb.SecurityGroup) { g.Rules[1].Destinations = []string{"20.0.0.1", "20.0.0.3"} }, map[string]string{rules + "1.properties.destinationAddressPrefixes": `["20.0.0.1","20.0.0.3"]`}, ""},
		{"one destination", func(g *lb.SecurityGroup) { g.Rules[1].Destinations = []string{"20.0.0.1"} }, map[string]string{rules + "1.properties.destinationAddressPrefixes": "", rules + "1.properties.destinationAddressPrefix": `"20.0.0.1"`}, ""},
		{"many instead of one", func(g *lb.SecurityGroup) { g.Rules[0].DestinationPorts = []string{"22", "23"} }, map[string]string{rules + "0.properties.destinationPortRange": "", rules + "0.properties.destinationPortRanges": `["22","23"]`}, ""},
		{"another priority", func(g *lb.SecurityGroup) { g.Rules[1].Priority = 501 }, map[string]string{rules + "1.properties.priority": "501"}, ""},
		{"another rule", func(g *lb.SecurityGroup) {
			g.Rules = append(g.Rules, lb.SecurityRule{
				Name: "new", Priority: 502, Direction: lb.Inbound, Access: lb.Allow, Protocol: "Udp", Sources: []string{"Internet"},
				SourcePorts: []string{lb.Any}, Destinations: []string{"20.0.0.1", "20.0.0.2"}, DestinationPorts: []string{"53"},
			})
		}, nil, `{"name":"new","properties":{"priority":502,"direction":"Inbound","access":"Allow","protocol":"Udp","sourceAddressPrefix":"Internet","sourcePortRange":"*","destinationAddressPrefixes":["20.0.0.1","20.0.0.2"],"destinationPortRange":"53"}}`},
		{"no rules", func(g *lb.SecurityGroup) { g.Rules = nil }, map[string]string{"properties.securityRules": "[]"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := readSecurityGroup(t, richSecurityGroup)
			before, _ := json.Marshal(g.Origin)
			tt.change(&g)
			wire := &fakeARM{answer: replySequence(newReply(200, richSecurityGroup))}
			if _, err := newClient(t, wire).PutSecurityGroup(t.Context(), g); err != nil {
				t.Fatal(err)
			}
			want := copied(t, json.RawMessage(richSecurityGroup))
			for _, azures := range []string{
				"name", "etag", "type", "properties.provisioningState", "properties.resourceGuid", "properties.defaultSecurityRules", "properties.subnets",
				"properties.networkInterfaces", "properties.flowLogs", rules + "0.etag", rules + "0.type", rules + "0.properties.provisioningState",
			} {
				place(t, want, strings.Split(azures, "."), "")
			}
			for path, text := range tt.want {
				place(t, want, strings.Split(path, "."), text)
			}
			if tt.adds != "" {
				list := want.(map[string]any)["properties"].(map[string]any)
				list["securityRules"] = append(list["securityRules"].([]any), copied(t, json.RawMessage(tt.adds)))
			}
			if diff := cmp.Diff(want, copied(t, json.RawMessage(wire.calls[0].body))); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if after, _ := json.Marshal(g.Origin); string(after) != string(before) {
				t.Error("what was read has changed")
			}
			if wire.calls[0].header.Get("If-Match") != `W/"e1"` {
				t.Errorf("guarded by %v", wire.calls[0].header)
			}
		})
	}
}

func TestASecurityGroupIsNeverMade(t *testing.T) {
	wire := &fakeARM{answer: replySequence(newReply(200, richSecurityGroup))}
	client := newClient(t, wire)
	_, err := client.PutSecurityGroup(t.Context(), lb.SecurityGroup{ID: groupOfNodes})
	wantFault(t, err, armerror.Terminal, codeResourceNotRead)
	_, err = client.GetSecurityGroup(t.Context(), webPublicIP)
	wantFault(t, err, armerror.Terminal, codeInvalidID)
	g := readSecurityGroup(t, richSecurityGroup)
	g.Etag = ""
	_, err = client.PutSecurityGroup(t.Context(), g)
	wantFault(t, err, armerror.Terminal, codeNoEtag)
	if n := wire.count(""); n != 0 {
		t.Errorf("%d requests left", n)
	}
}
