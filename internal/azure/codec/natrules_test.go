// SPDX-License-Identifier: Apache-2.0

package codec_test

import (
	"fmt"
	"testing"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// A NAT rule counts for its pool or for its IP configuration.
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
