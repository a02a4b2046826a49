// SPDX-License-Identifier: Apache-2.0

package rehearse

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/privatelinkround"
)

// LinkReader reads Private Link Services; see privatelinkround.Azure.
type LinkReader interface {
	List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error)
	GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error)
}

// Links keeps writes of Private Link Services in memory, as Shadow does for load balancers.
type Links struct {
	from    LinkReader
	slot    chan struct{}
	listed  map[string]error
	links   map[string]*Changed[lb.PrivateLinkService]
	subnets map[string]*Changed[lb.Subnet]
}

var _ privatelinkround.Azure = (*Links)(nil)

func newLinks(from LinkReader) *Links {
	return &Links{from: from, slot: make(chan struct{}, 1), listed: map[string]error{}, links: map[string]*Changed[lb.PrivateLinkService]{}, subnets: map[string]*Changed[lb.Subnet]{}}
}

func (l *Links) lock() (unlock func()) {
	l.slot <- struct{}{}
	return func() { <-l.slot }
}

// List implements privatelinkround.Azure.
func (l *Links) List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error) {
	defer l.lock()()
	key := strings.ToLower(subscription + "/" + resourceGroup)
	err, done := l.listed[key]
	if !done {
		var all []lb.PrivateLinkService
		all, err = l.from.List(ctx, subscription, resourceGroup)
		for _, p := range all {
			if l.links[p.ID.Key()] == nil {
				l.links[p.ID.Key()] = &Changed[lb.PrivateLinkService]{Was: p, Is: p}
			}
		}
		if f := fault.From(err); f == nil || f.Class == fault.Stale {
			l.listed[key] = err
		}
	}
	var all []lb.PrivateLinkService
	for _, id := range slices.Sorted(maps.Keys(l.links)) {
		p := l.links[id].Is
		if p.Etag != "" && strings.EqualFold(p.ID.SubscriptionID, subscription) && strings.EqualFold(p.ID.ResourceGroup, resourceGroup) {
			all = append(all, p)
		}
	}
	return all, err
}

// Get implements privatelinkround.Azure.
func (l *Links) Get(_ context.Context, id lb.ResourceID) (lb.PrivateLinkService, error) {
	defer l.lock()()
	if known := l.links[id.Key()]; known != nil && known.Is.Etag != "" {
		return known.Is, nil
	}
	return lb.PrivateLinkService{}, notThere("private link service " + id.Name)
}

// Put implements privatelinkround.Azure. Azure would assign the alias.
func (l *Links) Put(_ context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error) {
	defer l.lock()()
	known := l.links[next.ID.Key()]
	if known == nil {
		known = &Changed[lb.PrivateLinkService]{Was: lb.PrivateLinkService{ID: next.ID}}
		l.links[next.ID.Key()] = known
	}
	next.Etag, next.Provisioning = cmp.Or(next.Etag, planned), lb.Succeeded
	known.Is = next
	return next, nil
}

// Delete implements privatelinkround.Azure.
func (l *Links) Delete(_ context.Context, p lb.PrivateLinkService) error {
	defer l.lock()()
	if known := l.links[p.ID.Key()]; known != nil {
		known.Is = lb.PrivateLinkService{ID: p.ID}
	}
	return nil
}

// DeleteConnection implements privatelinkround.Azure.
func (l *Links) DeleteConnection(_ context.Context, of lb.ResourceID, connection lb.PrivateEndpointConnection) error {
	defer l.lock()()
	if known := l.links[of.Key()]; known != nil {
		known.Is.Connections = slices.DeleteFunc(slices.Clone(known.Is.Connections), func(c lb.PrivateEndpointConnection) bool { return c.Name == connection.Name })
	}
	return nil
}

// GetSubnet implements privatelinkround.Azure.
func (l *Links) GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error) {
	defer l.lock()()
	key := strings.ToLower(lb.Subnet{Network: network, Name: name}.String())
	if known := l.subnets[key]; known != nil {
		return known.Is, nil
	}
	is, err := l.from.GetSubnet(ctx, network, name)
	if err == nil {
		l.subnets[key] = &Changed[lb.Subnet]{Was: is, Is: is}
	}
	return is, err
}

// OpenSubnet implements privatelinkround.Azure.
func (l *Links) OpenSubnet(_ context.Context, next lb.Subnet) (lb.Subnet, error) {
	defer l.lock()()
	next.LinkPolicies = false
	if known := l.subnets[strings.ToLower(next.String())]; known != nil {
		known.Is = next
	}
	return next, nil
}

func (l *Links) differences() (links []Changed[lb.PrivateLinkService], subnets []Changed[lb.Subnet]) {
	if l == nil {
		return nil, nil
	}
	defer l.lock()()
	return ordered(l.links), ordered(l.subnets)
}

// linkReadings caches reads, within the shared limit.
type linkReadings struct {
	privatelinkround.Azure
	read *readings
}

// List implements LinkReader.
func (r linkReadings) List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error) {
	return once(ctx, r.read, func() ([]lb.PrivateLinkService, error) { return r.Azure.List(ctx, subscription, resourceGroup) },
		"private link services", subscription, resourceGroup)
}

// GetSubnet implements LinkReader.
func (r linkReadings) GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error) {
	return once(ctx, r.read, func() (lb.Subnet, error) { return r.Azure.GetSubnet(ctx, network, name) }, "subnet", network.Key(), name)
}
