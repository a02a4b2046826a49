// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

// IP configurations count as members only if there are no entries.
func TestMembers(t *testing.T) {
	pool, err := DecodePool(lb.PoolID{Name: "p"}, newDocument(`{"properties":{"backendIPConfigurations":[null,{},{"id":"/nic/ipConfigurations/ip"}]}}`))
	if got := PoolMembers(pool); err != nil || len(pool.Addresses) > 0 || len(got) != 1 || got[0].Interface != "/nic/ipConfigurations/ip" {
		t.Errorf("%+v, %v, and the pool has %+v", got, err, pool.Addresses)
	}
	pool, err = DecodePool(lb.PoolID{Name: "p"}, newDocument(`{"properties":{"backendIPConfigurations":[{"id":"/nic"}],"loadBalancerBackendAddresses":[{"name":"entry"}]}}`))
	if got := PoolMembers(pool); err != nil || len(got) != 1 || got[0].Name != "entry" {
		t.Errorf("%+v, %v", got, err)
	}
	if got := PoolMembers(lb.Pool{}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}
