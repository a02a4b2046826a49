// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"weir.dev/weir/internal/lb"
)

// ResourceChange is a resource before and after; an empty etag means absent.
type ResourceChange[T any] struct{ Before, After T }

// Changes are a shadow's resources sorted by ID, including unchanged ones.
type Changes struct {
	LoadBalancers []ResourceChange[lb.LoadBalancer]
	PublicIPs     []ResourceChange[lb.PublicIP]
	Groups        []ResourceChange[lb.SecurityGroup]
	Links         []ResourceChange[lb.PrivateLinkService]
	Subnets       []ResourceChange[lb.Subnet]
	// PoolWrites counts pool writes.
	PoolWrites int
	// Placeholders describes placeholders of addresses that Azure would assign.
	Placeholders map[netip.Addr]string
}

// ListChanges returns the resources so far.
func (s *Shadow) ListChanges() Changes {
	defer s.lock()()
	return Changes{
		LoadBalancers: sortChanges(s.loadBalancers), PublicIPs: sortChanges(s.publicIPs), Groups: sortChanges(s.securityGroups), PoolWrites: s.poolWrites, Placeholders: maps.Clone(s.placeholders),
	}
}

func sortChanges[K cmp.Ordered, T any](changes map[K]*ResourceChange[T]) []ResourceChange[T] {
	list := make([]ResourceChange[T], 0, len(changes))
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		list = append(list, *changes[key])
	}
	return list
}

// ListChanges includes Private Link Services.
func (s *Simulator) ListChanges() Changes {
	d := s.Shadow.ListChanges()
	d.Links, d.Subnets = s.Links.listChanges()
	return d
}
