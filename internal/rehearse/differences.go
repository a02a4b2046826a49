// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Changed is a resource before and after. Without an etag it does not exist.
type Changed[T any] struct{ Was, Is T }

// Differences are the resources of a shadow, sorted by ID, including those only read.
type Differences struct {
	Balancers []Changed[lb.LoadBalancer]
	PublicIPs []Changed[lb.PublicIP]
	Groups    []Changed[lb.SecurityGroup]
	Links     []Changed[lb.PrivateLinkService]
	Subnets   []Changed[lb.Subnet]
	// Pools counts the pools to write; each needs its own request.
	Pools int
	// Given describes each placeholder for an address that Azure would assign.
	Given map[netip.Addr]string
}

// Differences returns what was read and written so far.
func (s *Shadow) Differences() Differences {
	defer s.lock()()
	return Differences{
		Balancers: ordered(s.balancers), PublicIPs: ordered(s.ips), Groups: ordered(s.groups), Pools: s.pools, Given: maps.Clone(s.given),
	}
}

func ordered[K cmp.Ordered, T any](all map[K]*Changed[T]) []Changed[T] {
	list := make([]Changed[T], 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		list = append(list, *all[key])
	}
	return list
}

// Differences returns what was read and written so far, including Private Link Services.
func (r *Rehearsal) Differences() Differences {
	d := r.Shadow.Differences()
	d.Links, d.Subnets = r.Links.differences()
	return d
}
