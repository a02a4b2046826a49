// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/lb"
)

// Who is shown by the IP configurations alone is a member; entries count where there are any.
func TestMembers(t *testing.T) {
	shown := &armnetwork.BackendAddressPool{Properties: &armnetwork.BackendAddressPoolPropertiesFormat{
		BackendIPConfigurations: []*armnetwork.InterfaceIPConfiguration{nil, {}, {ID: new("/nic/ipConfigurations/ip")}},
	}}
	pool := DecodePool(lb.PoolID{Name: "p"}, shown)
	if got := Members(pool); len(pool.Addresses) > 0 || len(got) != 1 || got[0].Interface != "/nic/ipConfigurations/ip" {
		t.Errorf("%+v, and the pool has %+v", got, pool.Addresses)
	}
	shown.Properties.LoadBalancerBackendAddresses = []*armnetwork.LoadBalancerBackendAddress{{Name: new("entry")}}
	if got := Members(DecodePool(lb.PoolID{Name: "p"}, shown)); len(got) != 1 || got[0].Name != "entry" {
		t.Errorf("%+v", got)
	}
	if got := Members(lb.Pool{}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}
