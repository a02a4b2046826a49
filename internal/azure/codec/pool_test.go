// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"
	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
)

const vnet = "/subscriptions/s1/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/v"

var webPool = lb.PoolID{LoadBalancer: lb.LoadBalancerID{SubscriptionID: "s1", ResourceGroup: "rg", Name: "kubernetes"}, Name: "shop-web"}

func address(name, ip string) lb.Address { return lb.Address{Name: name, IP: netip.MustParseAddr(ip)} }

// Properties of EncodePool for any pool: the body has the wanted addresses in order, existing
// entries retain writable properties, and the origin is not modified.
func TestEncodeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shown := drawPool(t)
		before := documentOf(shown)
		pool, err := DecodePool(webPool, documentOf(shown))
		if err != nil {
			t.Fatal(err)
		}
		var next []lb.Address
		for _, a := range pool.Addresses {
			if rapid.Bool().Draw(t, "stays") {
				next = append(next, a)
			}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "new") {
			next = append(next, address(fmt.Sprintf("new%d", i), fmt.Sprintf("10.1.0.%d", i+1)))
		}
		edit := pool
		edit.Addresses = next
		sent, err := EncodePool(edit, vnet)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodePool(webPool, documentOf(sent))
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Addresses) != len(next) {
			t.Fatalf("sent %d addresses of %d", len(got.Addresses), len(next))
		}
		for i, a := range next {
			b := got.Addresses[i]
			if entryKey(a) != entryKey(b) || a.AdminState != b.AdminState {
				t.Fatalf("address %d: sent %+v for %+v", i, b, a)
			}
			if !strings.HasPrefix(a.Name, "new") && a.VirtualNetwork != b.VirtualNetwork {
				t.Fatalf("address %d that stays changed its network from %q to %q", i, a.VirtualNetwork, b.VirtualNetwork)
			}
		}
		if after, _ := pool.Origin.(Document); string(after.Text) != string(before.Text) {
			t.Fatal("what was read was changed")
		}
	})
}

func drawPool(t *rapid.T) *armnetwork.BackendAddressPool {
	maybe := func(label string, value string) *armnetwork.SubResource {
		if !rapid.Bool().Draw(t, label) {
			return nil
		}
		return &armnetwork.SubResource{ID: &value}
	}
	p := &armnetwork.BackendAddressPoolPropertiesFormat{VirtualNetwork: maybe("pool network", "/v")}
	for i := range rapid.IntRange(0, 5).Draw(t, "observed") {
		name, ip := fmt.Sprintf("Old%d", i), fmt.Sprintf("10.0.0.%d", i+1)
		e := &armnetwork.LoadBalancerBackendAddressPropertiesFormat{
			Subnet: maybe("subnet", "/v/subnets/s"), LoadBalancerFrontendIPConfiguration: maybe("frontend", "/f"),
		}
		if p.VirtualNetwork == nil {
			e.VirtualNetwork = maybe("network", "/v")
		}
		if rapid.Bool().Draw(t, "has an address") {
			e.IPAddress = &ip
		}
		if rapid.Bool().Draw(t, "admin state") {
			e.AdminState = new(armnetwork.LoadBalancerBackendAddressAdminStateDown)
		}
		p.LoadBalancerBackendAddresses = append(p.LoadBalancerBackendAddresses, &armnetwork.LoadBalancerBackendAddress{Name: &name, Properties: e})
	}
	return &armnetwork.BackendAddressPool{Properties: p}
}
