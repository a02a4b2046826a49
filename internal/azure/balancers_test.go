// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"weir.dev/weir/internal/lb"
)

const (
	balancer = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes"
	webIP    = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/publicIPAddresses/web"
)

// busyBalancer is a load balancer with foreign resources.
const busyBalancer = `{
  "name": "kubernetes", "id": "` + balancer + `", "type": "Microsoft.Network/loadBalancers", "etag": "W/\"e1\"", "location": "eastus",
  "sku": {"name": "Standard", "tier": "Regional"}, "tags": {"team": "net"}, "extendedLocation": {"name": "losangeles", "type": "EdgeZone"},
  "properties": {
    "provisioningState": "Succeeded", "resourceGuid": "0-1", "scope": "Public",
    "frontendIPConfigurations": [
      {"name": "web", "id": "` + balancer + `/frontendIPConfigurations/web", "etag": "W/\"e1\"", "zones": ["1", "2"], "properties": {
        "provisioningState": "Succeeded", "privateIPAllocationMethod": "Dynamic", "publicIPAddress": {"id": "` + webIP + `"},
        "gatewayLoadBalancer": {"id": "/gateway"}, "loadBalancingRules": [{"id": "/x/web-80"}]}},
      {"name": "inner", "properties": {"subnet": {"id": "/subnet"}, "privateIPAddress": "10.0.0.9", "privateIPAllocationMethod": "Static", "privateIPAddressVersion": "IPv4"}},
      {"name": "dynamic", "properties": {"subnet": {"id": "/subnet"}, "privateIPAddress": "10.0.0.10", "privateIPAllocationMethod": "Dynamic"}},
      {"name": "Egress", "properties": {"publicIPPrefix": {"id": "/prefix"}}},
      {"name": "ssh", "properties": {"publicIPAddress": {"id": "/ssh"}}}
    ],
    "backendAddressPools": [
      {"name": "web", "etag": "W/\"e1\"", "properties": {"provisioningState": "Succeeded", "drainPeriodInSeconds": 7, "virtualNetwork": {"id": "/v"},
        "loadBalancerBackendAddresses": [{"name": "n1", "properties": {"ipAddress": "10.0.0.4", "adminState": "Down"}}]}},
      {"name": "nics", "properties": {"backendIPConfigurations": [{"id": "/nic"}],
        "loadBalancerBackendAddresses": [{"name": "nic", "properties": {"networkInterfaceIPConfiguration": {"id": "/nic"}, "adminState": "Up"}}]}},
      {"name": "second", "properties": {}}, {"name": "Out", "properties": {}}, {"name": "natted", "properties": {}}
    ],
    "probes": [{"name": "p", "properties": {"protocol": "Http", "port": 8080, "requestPath": "/ok", "intervalInSeconds": 5, "numberOfProbes": 1, "probeThreshold": 2, "noHealthyBackendsBehavior": "AllProbedUp"}},
      {"name": "old", "properties": {"protocol": "Tcp", "port": 22, "intervalInSeconds": 15, "numberOfProbes": 4}}],
    "loadBalancingRules": [
      {"name": "web-80", "properties": {"protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true, "enableTcpReset": true, "enableConnectionTracking": true,
        "idleTimeoutInMinutes": 9, "loadDistribution": "SourceIP", "disableOutboundSnat": true,
        "frontendIPConfiguration": {"id": "` + balancer + `/frontendIPConfigurations/Web"}, "probe": {"id": "` + balancer + `/probes/p"},
        "backendAddressPool": {"id": "` + balancer + `/backendAddressPools/web"}, "backendAddressPools": [{"id": "` + balancer + `/backendAddressPools/web"}]}},
      {"name": "gateway", "properties": {"protocol": "All", "frontendPort": 0, "backendPort": 0, "frontendIPConfiguration": {"id": "/f/inner"},
        "backendAddressPools": [{"id": "/p/web"}, {"id": "/p/second"}]}}
    ],
    "outboundRules": [{"name": "o", "properties": {"provisioningState": "Succeeded", "protocol": "All", "backendAddressPool": {"id": "/p/Out"}, "frontendIPConfigurations": [{"id": "/f/Egress"}]}}],
    "inboundNatRules": [{"name": "i", "properties": {"frontendPort": 22, "frontendIPConfiguration": {"id": "/f/ssh"}, "backendAddressPool": {"id": "/p/natted"}, "backendIPConfiguration": {"id": "/nic"}}}],
    "inboundNatPools": [{"name": "np", "properties": {"backendPort": 22, "frontendIPConfiguration": {"id": "/f/dynamic"}}}]
  }}`

var kubernetes = webPool.LoadBalancer

func readBalancer(t *testing.T) lb.LoadBalancer {
	t.Helper()
	b, err := newClient(t, &fakeARM{answer: replySequence(newReply(200, busyBalancer))}).GetLoadBalancer(context.WithoutCancel(t.Context()), kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestALoadBalancerIsReadWhole(t *testing.T) {
	pool := func(name string, addresses ...lb.Address) lb.Pool {
		return lb.Pool{ID: lb.PoolID{LoadBalancer: kubernetes, Name: name}, Etag: lb.NoEtag, Addresses: addresses}
	}
	web, nics := pool("web", lb.Address{Name: "n1", IP: netip.MustParseAddr("10.0.0.4"), AdminState: "Down"}), pool("nics", lb.Address{Name: "nic", Interface: "/nic", AdminState: "Up"})
	web.Etag, web.VirtualNetwork, web.Provisioning, nics.NIC = `W/"e1"`, "/v", lb.Succeeded, true
	web.DrainSeconds = new(int32(7))
	want := lb.LoadBalancer{
		ID: kubernetes, Etag: `W/"e1"`, Location: "eastus", SKU: lb.Standard, ExtendedLocation: "losangeles",
		Tags: map[string]string{"team": "net"}, Provisioning: lb.Succeeded,
		Frontends: []lb.Frontend{
			{Name: "web", PublicIP: webIP, Zones: []string{"1", "2"}, GatewayLoadBalancer: new("/gateway")},
			{Name: "inner", Subnet: "/subnet", PrivateIP: netip.MustParseAddr("10.0.0.9"), Static: true, Family: lb.IPv4},
			{Name: "dynamic", Subnet: "/subnet", PrivateIP: netip.MustParseAddr("10.0.0.10"), Family: lb.IPv4},
			{Name: "Egress"}, {Name: "ssh", PublicIP: "/ssh"},
		},
		Pools: []lb.Pool{web, nics, pool("second"), pool("Out"), pool("natted")},
		Probes: []lb.Probe{
			{Name: "p", Protocol: lb.ProbeHTTP, Port: 8080, Path: "/ok", IntervalSeconds: 5, Threshold: 2, NoHealthyBackends: lb.AllProbedUp},
			{Name: "old", Protocol: lb.ProbeTCP, Port: 22, IntervalSeconds: 15, Threshold: 4},
		},
		Rules: []lb.Rule{
			{
				Name: "web-80", Transport: lb.TCP, Frontend: "Web", Pool: "web", Probe: "p", FrontendPort: 80, BackendPort: 80,
				FloatingIP: true, IdleMinutes: 9, TCPReset: new(true), Distribution: lb.SourceIP, DisableOutboundSNAT: true, ConnectionTracking: new(true),
			},
			{Name: "gateway", Transport: lb.All, Frontend: "inner", Pool: "web", IdleMinutes: 4, Distribution: lb.Spread},
		},
		Pinned:   map[string]bool{"egress": true, "out": true, "ssh": true, "natted": true, "dynamic": true, "second": true},
		NATRules: map[string]int{"natted": 1},
	}
	got := readBalancer(t)
	if got.Origin == nil || got.Pools[0].Origin == nil {
		t.Error("what was read is not kept")
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(lb.LoadBalancer{}, "Origin"), cmpopts.IgnoreFields(lb.Pool{}, "Origin"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// putBalancer returns the first request of a write.
func putBalancer(t *testing.T, b lb.LoadBalancer, change ...func(*Options)) sent {
	t.Helper()
	wire := &fakeARM{answer: replySequence(newReply(200, busyBalancer))}
	if _, err := newClient(t, wire, change...).PutLoadBalancer(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return wire.calls[0]
}

// A new load balancer has all wanted properties, including zeros, and If-None-Match.
func TestALoadBalancerIsMade(t *testing.T) {
	request := putBalancer(t, lb.LoadBalancer{
		ID: kubernetes, Location: "eastus", SKU: lb.Standard, ExtendedLocation: "losangeles",
		Frontends: []lb.Frontend{
			{Name: "a", PublicIP: webIP, Family: lb.IPv6},
			{Name: "b", Subnet: "/subnet", PrivateIP: netip.MustParseAddr("fd00::9"), Static: true, Family: lb.IPv6, Zones: []string{"1"}},
			{Name: "c", Subnet: "/subnet", Family: lb.IPv4},
		},
		Pools:  []lb.Pool{{ID: lb.PoolID{Name: "web"}, Addresses: []lb.Address{address("n1", "10.0.0.4")}}, {ID: lb.PoolID{Name: "empty"}, VirtualNetwork: "/own", DrainSeconds: new(int32(30))}},
		Probes: []lb.Probe{{Name: "p", Protocol: lb.ProbeTCP, Port: 80, IntervalSeconds: 5, Threshold: 2}},
		Rules: []lb.Rule{
			{Name: "r", Transport: lb.All, Frontend: "c", Pool: "web", Probe: "p", IdleMinutes: 4, TCPReset: new(false), Distribution: lb.Spread},
			{Name: "u", Transport: lb.UDP, Frontend: "a", Pool: "empty", FrontendPort: 53, BackendPort: 53, FloatingIP: true, IdleMinutes: 4, Distribution: lb.SourceIP, DisableOutboundSNAT: true},
		},
	})
	const want = `{"location": "eastus", "sku": {"name": "Standard"}, "extendedLocation": {"name": "losangeles", "type": "EdgeZone"}, "properties": {
	  "frontendIPConfigurations": [
	    {"name": "a", "properties": {"publicIPAddress": {"id": "` + webIP + `"}}},
	    {"name": "b", "zones": ["1"], "properties": {"subnet": {"id": "/subnet"}, "privateIPAddress": "fd00::9", "privateIPAllocationMethod": "Static", "privateIPAddressVersion": "IPv6"}},
	    {"name": "c", "properties": {"subnet": {"id": "/subnet"}, "privateIPAllocationMethod": "Dynamic", "privateIPAddressVersion": "IPv4"}}],
	  "backendAddressPools": [
	    {"name": "web", "properties": {"virtualNetwork": {"id": "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v"}, "loadBalancerBackendAddresses": [{"name": "n1", "properties": {"ipAddress": "10.0.0.4"}}]}},
	    {"name": "empty", "properties": {"virtualNetwork": {"id": "/own"}, "drainPeriodInSeconds": 30, "loadBalancerBackendAddresses": []}}],
	  "probes": [{"name": "p", "properties": {"protocol": "Tcp", "port": 80, "intervalInSeconds": 5, "numberOfProbes": 2, "probeThreshold": 2}}],
	  "loadBalancingRules": [
	    {"name": "r", "properties": {"protocol": "All", "frontendPort": 0, "backendPort": 0, "enableFloatingIP": false, "disableOutboundSnat": false, "enableTcpReset": false, "idleTimeoutInMinutes": 4, "loadDistribution": "Default",
	      "frontendIPConfiguration": {"id": "` + balancer + `/frontendIPConfigurations/c"}, "backendAddressPool": {"id": "` + balancer + `/backendAddressPools/web"}, "probe": {"id": "` + balancer + `/probes/p"}}},
	    {"name": "u", "properties": {"protocol": "Udp", "frontendPort": 53, "backendPort": 53, "enableFloatingIP": true, "disableOutboundSnat": true, "idleTimeoutInMinutes": 4, "loadDistribution": "SourceIP",
	      "frontendIPConfiguration": {"id": "` + balancer + `/frontendIPConfigurations/a"}, "backendAddressPool": {"id": "` + balancer + `/backendAddressPools/empty"}}}]}}`
	if diff := cmp.Diff(canonical(t, want), canonical(t, request.body)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if request.header.Get("If-None-Match") != "*" || request.header.Get("If-Match") != "" {
		t.Errorf("guarded by %v", request.header)
	}
}

// One change leads to one difference in the body.
func TestAChangeChangesNothingElse(t *testing.T) {
	var unchanged map[string]any
	if err := json.Unmarshal([]byte(putBalancer(t, readBalancer(t)).body), &unchanged); err != nil {
		t.Fatal(err)
	}
	ref := func(collection, name string) string {
		return `{"id":"` + balancer + "/" + collection + "/" + name + `"}`
	}
	const (
		web, inner, dynamic = "frontendIPConfigurations.0.properties.", "frontendIPConfigurations.1.properties.", "frontendIPConfigurations.2.properties."
		probe, rule, gw     = "probes.0.properties.", "loadBalancingRules.0.properties.", "loadBalancingRules.1.properties."
	)
	tests := []struct {
		name   string
		change func(*lb.LoadBalancer)
		want   map[string]string // path below properties to the sent value; "" for none
	}{
		{"nothing", func(*lb.LoadBalancer) {}, nil},
		{"other capitals", func(b *lb.LoadBalancer) {
			b.Rules[0].Frontend, b.Rules[0].Pool, b.Frontends[0].PublicIP = "WEB", "WEB", strings.ToUpper(webIP)
		}, nil},
		{"public IP", func(b *lb.LoadBalancer) { b.Frontends[0].PublicIP = "/other" }, map[string]string{web + "publicIPAddress": `{"id":"/other"}`}},
		{"public IP in place of a prefix", func(b *lb.LoadBalancer) { b.Frontends[3].PublicIP = "/other" }, map[string]string{
			"frontendIPConfigurations.3.properties.publicIPAddress": `{"id":"/other"}`, "frontendIPConfigurations.3.properties.publicIPPrefix": "",
		}},
		{"address", func(b *lb.LoadBalancer) { b.Frontends[1].PrivateIP = netip.MustParseAddr("10.0.0.11") }, map[string]string{inner + "privateIPAddress": `"10.0.0.11"`}},
		{"any address", func(b *lb.LoadBalancer) { b.Frontends[1].Static = false }, map[string]string{inner + "privateIPAddress": "", inner + "privateIPAllocationMethod": `"Dynamic"`}},
		{"this very address", func(b *lb.LoadBalancer) { b.Frontends[2].Static = true }, map[string]string{dynamic + "privateIPAllocationMethod": `"Static"`}},
		{"another subnet", func(b *lb.LoadBalancer) { b.Frontends[2].Subnet = "/other" }, map[string]string{
			dynamic + "subnet": `{"id":"/other"}`, dynamic + "privateIPAddress": "", dynamic + "privateIPAddressVersion": `"IPv4"`,
		}},
		{"gateway load balancers", func(b *lb.LoadBalancer) {
			b.Frontends[0].GatewayLoadBalancer, b.Frontends[4].GatewayLoadBalancer = new("/other"), new("/gateway")
		}, map[string]string{web + "gatewayLoadBalancer": `{"id":"/other"}`, "frontendIPConfigurations.4.properties.gatewayLoadBalancer": `{"id":"/gateway"}`}},
		{"gateway load balancer in other capitals", func(b *lb.LoadBalancer) { b.Frontends[0].GatewayLoadBalancer = new("/GATEWAY") }, nil},
		{"no gateway load balancer", func(b *lb.LoadBalancer) {
			b.Frontends[0].GatewayLoadBalancer, b.Frontends[4].GatewayLoadBalancer = new(""), new("")
		}, map[string]string{web + "gatewayLoadBalancer": ""}},
		{"no gateway load balancer set", func(b *lb.LoadBalancer) { b.Frontends[0].GatewayLoadBalancer = nil }, nil},
		{"zones that nobody asks for", func(b *lb.LoadBalancer) { b.Frontends[0].Zones = nil }, nil},
		{"zones", func(b *lb.LoadBalancer) { b.Frontends[0].Zones = []string{"3"} }, map[string]string{"frontendIPConfigurations.0.zones": `["3"]`}},
		{"probe", func(b *lb.LoadBalancer) { b.Probes[0].Protocol, b.Probes[0].Path = lb.ProbeTCP, "" }, map[string]string{probe + "protocol": `"Tcp"`, probe + "requestPath": ""}},
		{"threshold", func(b *lb.LoadBalancer) { b.Probes[0].Threshold = 3 }, map[string]string{probe + "probeThreshold": "3", probe + "numberOfProbes": "3"}},
		{"behavior without healthy backends", func(b *lb.LoadBalancer) {
			b.Probes[0].NoHealthyBackends, b.Probes[1].NoHealthyBackends = lb.AllProbedDown, lb.AllProbedUp
		}, map[string]string{probe + "noHealthyBackendsBehavior": `"AllProbedDown"`, "probes.1.properties.noHealthyBackendsBehavior": `"AllProbedUp"`}},
		{"no behavior set", func(b *lb.LoadBalancer) { b.Probes[0].NoHealthyBackends = "" }, nil},
		{"connection tracking", func(b *lb.LoadBalancer) {
			b.Rules[0].ConnectionTracking, b.Rules[1].ConnectionTracking = new(false), new(true)
		}, map[string]string{rule + "enableConnectionTracking": "false", gw + "enableConnectionTracking": "true"}},
		{"no connection tracking set", func(b *lb.LoadBalancer) { b.Rules[0].ConnectionTracking = nil }, nil},
		{"drain periods", func(b *lb.LoadBalancer) {
			b.Pools[0].DrainSeconds, b.Pools[2].DrainSeconds = new(int32(0)), new(int32(30))
		}, map[string]string{"backendAddressPools.0.properties.drainPeriodInSeconds": "", "backendAddressPools.2.properties.drainPeriodInSeconds": "30"}},
		{"no drain period set", func(b *lb.LoadBalancer) { b.Pools[0].DrainSeconds = nil }, nil},
		{"rule's pool", func(b *lb.LoadBalancer) { b.Rules[0].Pool = "second" }, map[string]string{rule + "backendAddressPool": ref("backendAddressPools", "second"), rule + "backendAddressPools": ""}},
		{"rule's frontend", func(b *lb.LoadBalancer) { b.Rules[1].Frontend = "web" }, map[string]string{gw + "frontendIPConfiguration": ref("frontendIPConfigurations", "web")}},
		{"no probe", func(b *lb.LoadBalancer) { b.Rules[0].Probe = "" }, map[string]string{rule + "probe": ""}},
		{"a probe", func(b *lb.LoadBalancer) { b.Rules[1].Probe = "p" }, map[string]string{gw + "probe": ref("probes", "p")}},
		{"UDP", func(b *lb.LoadBalancer) { b.Rules[0].Transport, b.Rules[0].TCPReset = lb.UDP, nil }, map[string]string{rule + "protocol": `"Udp"`, rule + "enableTcpReset": ""}},
		{"ports", func(b *lb.LoadBalancer) { b.Rules[0].FrontendPort, b.Rules[0].BackendPort = 0, 0 }, map[string]string{rule + "frontendPort": "0", rule + "backendPort": "0"}},
		{"flags", func(b *lb.LoadBalancer) {
			b.Rules[0].FloatingIP, b.Rules[0].DisableOutboundSNAT, b.Rules[0].TCPReset = false, false, new(false)
		}, map[string]string{rule + "enableFloatingIP": "false", rule + "disableOutboundSnat": "false", rule + "enableTcpReset": "false"}},
		{"timeout and distribution", func(b *lb.LoadBalancer) { b.Rules[1].IdleMinutes, b.Rules[1].Distribution = 30, lb.SourceIP }, map[string]string{gw + "idleTimeoutInMinutes": "30", gw + "loadDistribution": `"SourceIP"`}},
		{"a node", func(b *lb.LoadBalancer) {
			b.Pools[0].Addresses = append(b.Pools[0].Addresses, address("n2", "10.0.0.5"))
		}, map[string]string{
			"backendAddressPools.0.properties.loadBalancerBackendAddresses": `[{"name":"n1","properties":{"adminState":"Down","ipAddress":"10.0.0.4"}},{"name":"n2","properties":{"ipAddress":"10.0.0.5"}}]`,
		}},
		{"a pool read later by itself", func(b *lb.LoadBalancer) {
			b.Pools[0] = readBody(t, `{"id":"{asked}","etag":"W/\"e2\"","properties":{"drainPeriodInSeconds":8}}`)
			b.Pools[0].ID.Name = "web"
		}, map[string]string{"backendAddressPools.0.properties.drainPeriodInSeconds": "8", "backendAddressPools.0.properties.loadBalancerBackendAddresses": "[]", "backendAddressPools.0.properties.virtualNetwork": ""}},
		{"a pool that forgot what it was read from", func(b *lb.LoadBalancer) { b.Pools[0].Origin = nil }, nil},
		{"the last rules go", func(b *lb.LoadBalancer) { b.Rules = nil }, map[string]string{"loadBalancingRules": "[]"}},
		{"the last probe goes", func(b *lb.LoadBalancer) { b.Probes = b.Probes[:1] }, map[string]string{"probes": `[{"name":"p","properties":{"intervalInSeconds":5,"noHealthyBackendsBehavior":"AllProbedUp","numberOfProbes":1,"port":8080,"probeThreshold":2,"protocol":"Http","requestPath":"/ok"}}]`}},
		{"tags", func(b *lb.LoadBalancer) { b.Tags = map[string]string{"a": "b"} }, map[string]string{"/tags": `{"a":"b"}`}},
		{"no tags", func(b *lb.LoadBalancer) { b.Tags = nil }, map[string]string{"/tags": `{}`}},
		{"no edge zone", func(b *lb.LoadBalancer) { b.ExtendedLocation = "" }, map[string]string{"/extendedLocation": ""}},
		{"SKU", func(b *lb.LoadBalancer) { b.SKU = lb.Basic }, map[string]string{"/sku": `{"name":"Basic","tier":"Regional"}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := readBalancer(t)
			before, _ := json.Marshal(b.Origin)
			tt.change(&b)
			request := putBalancer(t, b)
			var got map[string]any
			if err := json.Unmarshal([]byte(request.body), &got); err != nil {
				t.Fatal(err)
			}
			want := copied(t, unchanged)
			for path, text := range tt.want {
				if !strings.HasPrefix(path, "/") {
					path = "properties." + path
				}
				place(t, want, strings.Split(strings.TrimPrefix(path, "/"), "."), text)
			}
			if diff := cmp.Diff(want, any(got)); diff != "" {
				t.Errorf("sent (-want +got):\n%s", diff)
			}
			if after, _ := json.Marshal(b.Origin); string(after) != string(before) {
				t.Error("the write changed what the caller holds")
			}
			if request.header.Get("If-Match") != `W/"e1"` || request.header.Get("If-None-Match") != "" {
				t.Errorf("guarded by %v", request.header)
			}
		})
	}
}

func TestWithoutGuards(t *testing.T) {
	b := readBalancer(t)
	b.Etag = ""
	for _, b := range []lb.LoadBalancer{b, {ID: kubernetes}} {
		request := putBalancer(t, b, func(o *Options) { o.WithoutIfMatch = true })
		if request.method != http.MethodPut || request.header.Get("If-Match")+request.header.Get("If-None-Match") != "" {
			t.Errorf("%s guarded by %v", request.method, request.header)
		}
	}
}

// An empty list may be null; a response without a value is an error.
func TestAnEmptyListMayBeNull(t *testing.T) {
	for body, empty := range map[string]bool{`{"value":null}`: true, `{"value":[]}`: true, `{}`: false, `null`: false, `[]`: false} {
		client := newClient(t, &fakeARM{answer: replySequence(newReply(200, body))})
		if loadBalancers, err := client.ListLoadBalancers(t.Context(), "s1", "rg"); (err == nil) != empty || len(loadBalancers) > 0 {
			t.Errorf("%s: %v, %v", body, loadBalancers, err)
		}
	}
}

// A resource without an etag is written without a guard.
func TestWriteWithoutAnEtag(t *testing.T) {
	wire := &fakeARM{answer: replySequence(newReply(200, `{"id":"`+balancer+`","name":"kubernetes","properties":{}}`))}
	client, ctx := newClient(t, wire), t.Context()
	b, err := client.GetLoadBalancer(ctx, kubernetes)
	if err == nil {
		_, err = client.PutLoadBalancer(ctx, b)
	}
	if err == nil {
		err = client.DeleteLoadBalancer(ctx, b)
	}
	if err != nil || b.Etag != lb.NoEtag {
		t.Fatalf("%q, %v", b.Etag, err)
	}
	for _, call := range wire.calls {
		if call.header.Get("If-Match")+call.header.Get("If-None-Match") != "" {
			t.Errorf("%s guarded by %v", call.method, call.header)
		}
	}
}

// Only read-only properties are removed; a pool of network interfaces is sent as read.
func TestRequestBodyOfABusyLoadBalancer(t *testing.T) {
	body := putBalancer(t, readBalancer(t)).body
	for _, azures := range []string{"etag", "provisioningState", "resourceGuid", `"type":"Microsoft`, "/x/web-80", "backendIPConfiguration"} {
		if strings.Contains(body, azures) {
			t.Errorf("%s is sent in %s", azures, body)
		}
	}
	for _, foreign := range []string{
		`"gatewayLoadBalancer":{"id":"/gateway"}`, `"enableConnectionTracking":true`, `"noHealthyBackendsBehavior":"AllProbedUp"`, `"scope":"Public"`, `"tier":"Regional"`,
		`"networkInterfaceIPConfiguration":{"id":"/nic"}`, `"adminState":"Up"`, `"drainPeriodInSeconds":7`, `"publicIPPrefix":{"id":"/prefix"}`, `/frontendIPConfigurations/Web"`,
	} {
		if !strings.Contains(body, foreign) {
			t.Errorf("%s is lost in %s", foreign, body)
		}
	}
}

func copied(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var next any
	if err := json.Unmarshal(text, &next); err != nil {
		t.Fatal(err)
	}
	return next
}

// place sets JSON at a path; an empty text deletes the value.
func place(t *testing.T, v any, path []string, text string) {
	t.Helper()
	for ; len(path) > 1; path = path[1:] {
		switch at := v.(type) {
		case map[string]any:
			v = at[path[0]]
		case []any:
			v = at[path[0][0]-'0']
		default:
			t.Fatalf("nothing at %q", path)
		}
	}
	object := v.(map[string]any)
	delete(object, path[0])
	if text != "" {
		var item any
		if err := json.Unmarshal([]byte(text), &item); err != nil {
			t.Fatal(err)
		}
		object[path[0]] = item
	}
}
