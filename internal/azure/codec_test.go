// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// richPool has everything that Azure may show, managed and foreign.
const richPool = `{
  "name": "shop-web", "id": "{asked}", "type": "Microsoft.Network/loadBalancers/backendAddressPools", "etag": "W/\"e1\"",
  "properties": {
    "provisioningState": "Succeeded", "drainPeriodInSeconds": 30, "location": "eastus", "syncMode": "Automatic",
    "tunnelInterfaces": [{"port": 10800, "identifier": 900, "protocol": "VXLAN", "type": "Internal"}],
    "virtualNetwork": {"id": "/v"},
    "loadBalancingRules": [{"id": "/r"}], "outboundRule": {"id": "/o"}, "outboundRules": [{"id": "/o"}], "inboundNatRules": [{"id": "/i"}],
    "loadBalancerBackendAddresses": [
      {"name": "n1", "properties": {"ipAddress": "10.0.0.4", "adminState": "Down", "inboundNatRulesPortMapping": [{"frontendPort": 1}], "networkInterfaceIPConfiguration": {"id": "/nic"}}},
      {"name": "theirs", "properties": {"ipAddress": "10.9.0.1", "subnet": {"id": "/s"}, "adminState": "Up"}},
      {"name": "regional", "properties": {"loadBalancerFrontendIPConfiguration": {"id": "/f"}}},
      {"name": "odd", "properties": {"ipAddress": "not-an-address"}}
    ]}}`

// richWrite is the body that keeps n1, adds n2 and retains foreign entries.
const richWrite = `{
  "properties": {
    "drainPeriodInSeconds": 30, "location": "eastus", "syncMode": "Automatic",
    "tunnelInterfaces": [{"port": 10800, "identifier": 900, "protocol": "VXLAN", "type": "Internal"}],
    "virtualNetwork": {"id": "/v"},
    "loadBalancerBackendAddresses": [
      {"name": "n1", "properties": {"ipAddress": "10.0.0.4", "adminState": "Down"}},
      {"name": "theirs", "properties": {"ipAddress": "10.9.0.1", "subnet": {"id": "/s"}, "adminState": "Up"}},
      {"name": "regional", "properties": {"loadBalancerFrontendIPConfiguration": {"id": "/f"}}},
      {"name": "odd", "properties": {"ipAddress": "not-an-address"}},
      {"name": "n2", "properties": {"ipAddress": "10.0.0.5"}}
    ]}}`

func canonical(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	out, _ := json.MarshalIndent(v, "", " ")
	return string(out)
}

func readBody(t *testing.T, body string) lb.Pool {
	t.Helper()
	pool, err := newClient(t, &fakeARM{answer: replySequence(reply{status: 200, body: body})}).GetPool(context.WithoutCancel(t.Context()), webPool)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// putBody returns the body of a pool write.
func putBody(t *testing.T, pool lb.Pool, change ...func(*Options)) (string, error) {
	t.Helper()
	wire := &fakeARM{answer: replySequence(shown)}
	_, err := newClient(t, wire, change...).PutPool(t.Context(), pool)
	if wire.count(http.MethodPut) == 0 {
		return "", err
	}
	return wire.calls[0].body, err
}

func TestAWriteKeepsWhatItDoesNotModel(t *testing.T) {
	pool := readBody(t, richPool)
	want := []lb.Address{
		{Name: "n1", IP: netip.MustParseAddr("10.0.0.4"), AdminState: "Down"},
		{Name: "theirs", IP: netip.MustParseAddr("10.9.0.1"), AdminState: "Up"},
		{Name: "regional"}, {Name: "odd"},
	}
	if diff := cmp.Diff(want, pool.Addresses, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || pool.VirtualNetwork != "/v" || pool.NIC {
		t.Errorf("read %+v\n%s", pool, diff)
	}
	before, _ := json.Marshal(pool.Origin)
	next := pool
	next.Addresses = append(slices.Clone(pool.Addresses), address("n2", "10.0.0.5"))
	body, err := putBody(t, next)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(canonical(t, richWrite), canonical(t, body)); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if after, _ := json.Marshal(pool.Origin); string(after) != string(before) {
		t.Error("the write changed what the caller holds")
	}
}

// The SDK omits a nil array, and Azure would keep the addresses.
func TestRemovingLastAddressSendsEmptyArray(t *testing.T) {
	for _, none := range [][]lb.Address{nil, {}} {
		pool := readPool(t)
		pool.Addresses = none
		body, err := putBody(t, pool)
		if err != nil || !strings.Contains(body, `"loadBalancerBackendAddresses":[]`) {
			t.Errorf("sent %s, %v", body, err)
		}
	}
}

func TestAnAdminStateTravelsWithItsAddress(t *testing.T) {
	pool := readPool(t)
	pool.Addresses = slices.Clone(pool.Addresses)
	pool.Addresses[0].AdminState = "Down"
	body, err := putBody(t, pool)
	if err != nil || !strings.Contains(body, `"adminState":"Down"`) {
		t.Errorf("sent %s, %v", body, err)
	}
	moved := readPool(t)
	moved.Addresses = []lb.Address{address(moved.Addresses[0].Name, "10.0.0.9")}
	body, err = putBody(t, moved)
	if err != nil || strings.Contains(body, "adminState") || !strings.Contains(body, "10.0.0.9") || strings.Contains(body, `"ipAddress":"10.0.0.4"`) {
		t.Errorf("a node's new address is a new entry: sent %s, %v", body, err)
	}
}

func TestVirtualNetworkOfAWrite(t *testing.T) {
	entry := func(extra string) string {
		return `{"name":"old","properties":{"ipAddress":"10.0.0.4"` + extra + `}}`
	}
	body := func(network, entries string) string {
		return `{"id":"{asked}","etag":"e","properties":{` + network + `"loadBalancerBackendAddresses":[` + entries + `]}}`
	}
	tests := []struct {
		name, shown    string
		known          string // from azure.json
		pool, newEntry string // IDs in the body
	}{
		{"the pool's own stays", body(`"virtualNetwork":{"id":"/own"},`, entry("")), vnet, "/own", ""},
		{"entries bear theirs", body("", entry(`,"virtualNetwork":{"id":"/theirs"}`)), vnet, "", "/theirs"},
		{"entries bear a subnet", body("", entry(`,"subnet":{"id":"/net/v/subnets/s"}`)), vnet, "", "/net/v"},
		{"an empty pool gets azure.json's", body("", ""), vnet, vnet, ""},
		{"properties are empty", `{"id":"{asked}","etag":"e","properties":{}}`, vnet, vnet, ""},
		{"nobody knows", body("", ""), "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pool := readBody(t, tt.shown)
			pool.Addresses = append(slices.Clone(pool.Addresses), address("new", "10.0.0.5"))
			text, err := putBody(t, pool, func(o *Options) { o.VirtualNetworkID = tt.known })
			if tt.pool+tt.newEntry == "" {
				f := wantFault(t, err, armerror.Terminal, codeNoVirtualNetwork)
				if !strings.Contains(f.Error(), "pool kubernetes/shop-web") || !strings.Contains(f.Error(), "set vnetName") {
					t.Errorf("message %q names neither the pool nor the way out", f.Error())
				}
				return
			}
			type network struct{ ID string }
			var sent struct {
				Properties struct {
					VirtualNetwork               network
					LoadBalancerBackendAddresses []struct {
						Properties struct{ VirtualNetwork network }
					}
				}
			}
			if err := json.Unmarshal([]byte(text), &sent); err != nil {
				t.Fatal(err)
			}
			entries := sent.Properties.LoadBalancerBackendAddresses
			if got := sent.Properties.VirtualNetwork.ID; got != tt.pool {
				t.Errorf("pool's network %q, want %q", got, tt.pool)
			}
			if got := entries[len(entries)-1].Properties.VirtualNetwork.ID; got != tt.newEntry {
				t.Errorf("new entry's network %q, want %q", got, tt.newEntry)
			}
		})
	}
	t.Run("an empty pool that stays empty needs none", func(t *testing.T) {
		if _, err := putBody(t, readBody(t, body("", "")), func(o *Options) { o.VirtualNetworkID = "" }); err != nil {
			t.Error(err)
		}
	})
}

func TestPoolsOfNetworkInterfaces(t *testing.T) {
	const nic = `"networkInterfaceIPConfiguration":{"id":"/nic"}`
	tests := map[string]struct {
		properties string
		want       bool
	}{
		"configurations alone":           {`"backendIPConfigurations":[{"id":"/nic"}]`, true},
		"entries that refer to one":      {`"loadBalancerBackendAddresses":[{"name":"a","properties":{` + nic + `}}]`, true},
		"entries with nothing but names": {`"backendIPConfigurations":[{"id":"/nic"}],"loadBalancerBackendAddresses":[{"name":"a"}]`, true},
		"addresses":                      {`"loadBalancerBackendAddresses":[{"name":"a","properties":{"ipAddress":"10.0.0.4"}}]`, false},
		"addresses, and whose they are":  {`"backendIPConfigurations":[{"id":"/nic"}],"loadBalancerBackendAddresses":[{"name":"a","properties":{"ipAddress":"10.0.0.4",` + nic + `}}]`, false},
		"nothing":                        {``, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := readBody(t, `{"id":"{asked}","etag":"e","properties":{`+tt.properties+`}}`).NIC; got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestIPv6Addresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := readPool(t)
		pool.Addresses = []lb.Address{address("n6", "fd00:0:0::4")}
		body, err := putBody(t, pool)
		if err != nil || !strings.Contains(body, `"ipAddress":"fd00::4"`) {
			t.Errorf("sent %s, %v", body, err)
		}
	})
}
