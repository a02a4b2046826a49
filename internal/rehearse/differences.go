// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Changed is a resource before and after; one without an etag is not there.
type Changed[T any] struct{ Was, Is T }

// Differences are what was written to a shadow, in the order of the ids. What was read
// alone is in there, too, with nothing changed.
type Differences struct {
	Balancers []Changed[lb.LoadBalancer]
	PublicIPs []Changed[lb.PublicIP]
	Groups    []Changed[lb.SecurityGroup]
	Links     []Changed[lb.PrivateLinkService]
	Subnets   []Changed[lb.Subnet]
	// Pools counts the writes of pools: each takes one of its own.
	Pools int
	// Given says for what each address stands that Azure would choose.
	Given map[netip.Addr]string
}

// Differences returns what was written so far.
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

// Differences returns what was written so far, Private Link Services included.
func (r *Rehearsal) Differences() Differences {
	d := r.Shadow.Differences()
	d.Links, d.Subnets = r.Links.differences()
	return d
}
