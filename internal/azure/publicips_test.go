// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir.dev/weir/internal/lb"
)

var webPublicIP = lb.ResourceID{SubscriptionID: "s1", ResourceGroup: "rg", Type: lb.TypePublicIP, Name: "web"}

// richPublicIP is a public IP with foreign properties, used by a load balancer.
const richPublicIP = `{
  "name": "web", "id": "` + webIP + `", "etag": "W/\"e1\"", "location": "eastus", "zones": ["1", "2"], "extendedLocation": {"name": "losangeles", "type": "EdgeZone"},
  "sku": {"name": "Standard", "tier": "Regional"}, "tags": {"team": "net"},
  "properties": {
    "provisioningState": "Succeeded", "resourceGuid": "0-1", "ipAddress": "20.1.2.3", "publicIPAddressVersion": "IPv4", "publicIPAllocationMethod": "Static",
    "idleTimeoutInMinutes": 11, "ipTags": [{"ipTagType": "RoutingPreference", "tag": "Internet"}], "ddosSettings": {"protectionMode": "Enabled"},
    "dnsSettings": {"domainNameLabel": "shop", "domainNameLabelScope": "TenantReuse", "fqdn": "shop.eastus.cloudapp.azure.com", "reverseFqdn": "shop.example.com."},
    "publicIPPrefix": {"id": "/prefix"}, "ipConfiguration": {"id": "` + balancer + `/frontendIPConfigurations/web"}
  }}`

func readPublicIP(t *testing.T, body string) lb.PublicIP {
	t.Helper()
	ip, err := newClient(t, &fakeARM{answer: replySequence(newReply(200, body))}).GetPublicIP(context.WithoutCancel(t.Context()), webPublicIP)
	if err != nil {
		t.Fatal(err)
	}
	return ip
}

func TestAPublicIPIsRead(t *testing.T) {
	of := cmp.Options{cmpopts.IgnoreFields(lb.PublicIP{}, "Origin"), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()}
	tests := []struct {
		name, body string
		want       lb.PublicIP
	}{
		{"in use", richPublicIP, lb.PublicIP{
			ID: webPublicIP, Etag: `W/"e1"`, Address: netip.MustParseAddr("20.1.2.3"), Location: "eastus", SKU: lb.Standard, Static: true, Family: lb.IPv4,
			Zones: []string{"1", "2"}, ExtendedLocation: "losangeles", Prefix: "/prefix", IPTags: map[string]string{"RoutingPreference": "Internet"}, DNSLabel: "shop",
			Tags: map[string]string{"team": "net"}, UsedBy: balancer + "/frontendIPConfigurations/web", Provisioning: lb.Succeeded,
		}},
		{"of a NAT gateway", `{"name":"web","properties":{"natGateway":{"id":"/nat"}}}`, lb.PublicIP{ID: webPublicIP, Etag: lb.NoEtag, SKU: lb.Basic, Family: lb.IPv4, UsedBy: "/nat"}},
		{"still without an address", `{"name":"web","sku":{"name":"Standard"},"properties":{"publicIPAddressVersion":"IPv6","publicIPAllocationMethod":"Dynamic"}}`, lb.PublicIP{ID: webPublicIP, Etag: lb.NoEtag, SKU: lb.Standard, Family: lb.IPv6}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := readPublicIP(t, tt.body)
			if diff := cmp.Diff(tt.want, got, of); diff != "" || got.Origin == nil {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func putPublicIP(t *testing.T, ip lb.PublicIP) sent {
	t.Helper()
	wire := &fakeARM{answer: replySequence(newReply(200, richPublicIP))}
	if _, err := newClient(t, wire).PutPublicIP(t.Context(), ip); err != nil {
		t.Fatal(err)
	}
	return wire.calls[0]
}

func TestAPublicIPIsMade(t *testing.T) {
	request := putPublicIP(t, lb.PublicIP{
		ID: webPublicIP, Location: "eastus", SKU: lb.Standard, Static: true, Family: lb.IPv6, Zones: []string{"1"}, ExtendedLocation: "losangeles", Prefix: "/prefix",
		IPTags: map[string]string{"b": "2", "a": "1"}, DNSLabel: "shop", Tags: map[string]string{"k": "v"},
		Address: netip.MustParseAddr("20.1.2.3"), UsedBy: "/somebody",
	})
	const want = `{"location": "eastus", "sku": {"name": "Standard"}, "zones": ["1"], "extendedLocation": {"name": "losangeles", "type": "EdgeZone"}, "tags": {"k": "v"}, "properties": {
	  "publicIPAddressVersion": "IPv6", "publicIPAllocationMethod": "Static", "publicIPPrefix": {"id": "/prefix"},
	  "ipTags": [{"ipTagType": "a", "tag": "1"}, {"ipTagType": "b", "tag": "2"}], "dnsSettings": {"domainNameLabel": "shop"}}}`
	if diff := cmp.Diff(canonical(t, want), canonical(t, request.body)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if request.header.Get("If-None-Match") != "*" {
		t.Errorf("guarded by %v", request.header)
	}
}

func TestAChangeOfAPublicIP(t *testing.T) {
	tests := []struct {
		name   string
		change func(*lb.PublicIP)
		want   map[string]string
	}{
		{"nothing", func(*lb.PublicIP) {}, nil},
		{"another label", func(ip *lb.PublicIP) { ip.DNSLabel = "store" }, map[string]string{"properties.dnsSettings": `{"domainNameLabel":"store","domainNameLabelScope":"TenantReuse","reverseFqdn":"shop.example.com."}`}},
		{"no label", func(ip *lb.PublicIP) { ip.DNSLabel = "" }, map[string]string{"properties.dnsSettings": `{"reverseFqdn":"shop.example.com."}`}},
		{"dynamic", func(ip *lb.PublicIP) { ip.Static = false }, map[string]string{"properties.publicIPAllocationMethod": `"Dynamic"`}},
		{"prefix", func(ip *lb.PublicIP) { ip.Prefix = "/other" }, map[string]string{"properties.publicIPPrefix": `{"id":"/other"}`}},
		{"prefix in other capitals", func(ip *lb.PublicIP) { ip.Prefix = "/PREFIX" }, nil},
		{"no prefix", func(ip *lb.PublicIP) { ip.Prefix = "" }, map[string]string{"properties.publicIPPrefix": ""}},
		{"IP tags", func(ip *lb.PublicIP) { ip.IPTags = nil }, map[string]string{"properties.ipTags": "[]"}},
		{"tags", func(ip *lb.PublicIP) { ip.Tags = map[string]string{"a": "b"} }, map[string]string{"tags": `{"a":"b"}`}},
		{"SKU", func(ip *lb.PublicIP) { ip.SKU = lb.Basic }, map[string]string{"sku": `{"name":"Basic","tier":"Regional"}`}},
		{"zones", func(ip *lb.PublicIP) { ip.Zones = []string{"3"} }, map[string]string{"zones": `["3"]`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ip := readPublicIP(t, richPublicIP)
			before, _ := json.Marshal(ip.Origin)
			tt.change(&ip)
			request := putPublicIP(t, ip)
			want := copied(t, json.RawMessage(richPublicIP))
			for _, azures := range []string{"name", "etag", "properties.provisioningState", "properties.resourceGuid", "properties.ipConfiguration"} {
				place(t, want, strings.Split(azures, "."), "")
			}
			for path, text := range tt.want {
				place(t, want, strings.Split(path, "."), text)
			}
			if diff := cmp.Diff(want, copied(t, json.RawMessage(request.body))); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if after, _ := json.Marshal(ip.Origin); string(after) != string(before) {
				t.Error("the write changed what the caller holds")
			}
			if request.header.Get("If-Match") != `W/"e1"` {
				t.Errorf("guarded by %v", request.header)
			}
		})
	}
	t.Run("the last of the DNS settings", func(t *testing.T) {
		ip := readPublicIP(t, strings.Replace(richPublicIP, `, "reverseFqdn": "shop.example.com."`, "", 1))
		ip.DNSLabel = ""
		if body := putPublicIP(t, ip).body; strings.Contains(body, "dnsSettings") {
			t.Errorf("sent %s", body)
		}
	})
}
