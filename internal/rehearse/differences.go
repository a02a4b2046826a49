// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Changed is a resource before and after; an empty etag means absent.
type Changed[T any] struct{ Was, Is T }

// Differences are a shadow's resources sorted by ID, including unchanged ones.
type Differences struct {
	Balancers []Changed[lb.LoadBalancer]
	PublicIPs []Changed[lb.PublicIP]
	Groups    []Changed[lb.SecurityGroup]
	Links     []Changed[lb.PrivateLinkService]
	Subnets   []Changed[lb.Subnet]
	// Pools counts pool writes.
	Pools int
	// Given describes placeholders of addresses that Azure would assign.
	Given map[netip.Addr]string
}

// Differences returns the resources so far.
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

// Differences includes Private Link Services.
func (r *Rehearsal) Differences() Differences {
	d := r.Shadow.Differences()
	d.Links, d.Subnets = r.Links.differences()
	return d
}
