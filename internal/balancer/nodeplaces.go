// SPDX-License-Identifier: Apache-2.0

package balancer

import (
	"context"
	"net/netip"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// NodePlaces returns by address on which configuration Azure showed the nodes when it was
// first asked: in the shared pools of its load balancers. It asks once; what it returns is
// not to be changed.
func (b *Balancers) NodePlaces(ctx context.Context) (map[netip.Addr]string, error) {
	if err := b.readAll(ctx); err != nil {
		return nil, err
	}
	b.placements.mu.Lock()
	defer b.placements.mu.Unlock()
	return b.placements.nodes, nil
}

// nodePlaces reads the shared pools. An address that is on several configurations counts
// for the first of them.
func (s Settings) nodePlaces(all []lb.LoadBalancer) map[netip.Addr]string {
	places := map[netip.Addr]string{}
	for _, c := range s.Configurations {
		for _, balancer := range all {
			if of, ok := service.ConfigurationOf(balancer.ID.Name, s.Configurations); !ok || of.Name != c.Name {
				continue
			}
			for _, ip := range s.nodesBehind(balancer) {
				if places[ip] == "" {
					places[ip] = c.Name
				}
			}
		}
	}
	return places
}

// nodesBehind are the addresses in the shared pools of a load balancer.
func (s Settings) nodesBehind(balancer lb.LoadBalancer) []netip.Addr {
	var ips []netip.Addr
	for _, pool := range balancer.Pools {
		if containsFold(s.SharedPools(), pool.ID.Name) {
			for _, a := range pool.Addresses {
				ips = append(ips, a.IP)
			}
		}
	}
	return ips
}
