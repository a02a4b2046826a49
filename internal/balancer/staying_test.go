// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"testing"

	"weir.dev/weir/internal/lb"
)

// A pool of interfaces shows no addresses, and yet has members.
func TestARuleStaysWithAPoolOfInterfaces(t *testing.T) {
	pool := func(name string) lb.PoolID { return lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "lb"}, Name: name} }
	observed := lb.LoadBalancer{
		Rules: []lb.Rule{{Name: "r", Pool: "nodes"}},
		Pools: []lb.Pool{{ID: pool("nodes"), NIC: true, Etag: "1"}, {ID: pool("own"), Etag: "1"}},
	}
	stay, waits := staying([]lb.Rule{{Name: "r", Pool: "own"}}, observed, []lb.PoolID{pool("own")})
	if stay[0].Pool != "nodes" || len(waits) != 1 {
		t.Errorf("the rule goes to %s, and waits for %v", stay[0].Pool, waits)
	}
}
