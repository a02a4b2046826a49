// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"fmt"
	"testing"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// NAT rules count for a pool, or for the one IP configuration that they are for.
func TestInboundNATRulesAreCounted(t *testing.T) {
	shown := codec.Document{Version: "2025-05-01", Text: []byte(`{"properties":{"inboundNatRules":[
		{"properties":{"backendAddressPool":{"id":"/lb/backendAddressPools/Web"}}},
		{"properties":{"backendAddressPool":{"id":"/lb/backendAddressPools/web"}}},
		{"properties":{"backendIPConfiguration":{"id":"/nic/a/ipConfigurations/one"}}},
		{"properties":{"backendIPConfiguration":{"id":"/nic/A/ipConfigurations/one"}}},
		{"properties":{"backendIPConfiguration":{"id":"/nic/b/ipConfigurations/one"}}},
		{"properties":{"frontendPort":22}}
	]}}`)}
	b, err := codec.DecodeLoadBalancer(lb.LoadBalancerID{Name: "lb"}, shown)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(b.NATRules); got != "map[:2 web:2]" {
		t.Error(got)
	}
}
