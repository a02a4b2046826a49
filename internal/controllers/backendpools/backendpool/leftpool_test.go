// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"testing"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
)

// A pool that Weir created and left to others contains foreign addresses: only the nodes are Weir's.
func TestMembersOfAReleasedPool(t *testing.T) {
	w := &world{nodes: map[string]netip.Addr{}}
	c := &Controller{Config: Config{Cluster: w, Owner: w}}
	p := &v1alpha1.BackendPool{Spec: v1alpha1.BackendPoolSpec{PoolName: "shop-a", LoadBalancer: v1alpha1.LoadBalancerReference{Name: "lb"}}, Status: v1alpha1.BackendPoolStatus{MadeFor: "web"}}
	at, err := w.Target(p)
	if err != nil {
		t.Fatal(err)
	}
	foreign := netip.MustParseAddr("203.0.113.9")
	for _, left := range []bool{false, true} {
		w.left = map[lb.PoolKey]bool{at.Key(): left}
		if isManaged := c.ManagedAddresses(p)(foreign); isManaged == left {
			t.Errorf("left %t: ours %t", left, isManaged)
		}
	}
}
