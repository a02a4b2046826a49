// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/privatelink"
)

// LinkReader reads Private Link Services; see desired.Azure.
type LinkReader interface {
	List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error)
	GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error)
}

// LinkShadow keeps writes of Private Link Services in memory, as Shadow does for load balancers.
type LinkShadow struct {
	reader     LinkReader
	mu         chan struct{}
	listErrors map[string]error
	links      map[string]*ResourceChange[lb.PrivateLinkService]
	subnets    map[string]*ResourceChange[lb.Subnet]
}

var _ privatelink.Azure = (*LinkShadow)(nil)

func newLinkShadow(from LinkReader) *LinkShadow {
	return &LinkShadow{reader: from, mu: make(chan struct{}, 1), listErrors: map[string]error{}, links: map[string]*ResourceChange[lb.PrivateLinkService]{}, subnets: map[string]*ResourceChange[lb.Subnet]{}}
}

func (l *LinkShadow) lock() (unlock func()) {
	l.mu <- struct{}{}
	return func() { <-l.mu }
}

// List implements desired.Azure.
func (l *LinkShadow) List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error) {
	defer l.lock()()
	key := strings.ToLower(subscription + "/" + resourceGroup)
	err, done := l.listErrors[key]
	if !done {
		var links []lb.PrivateLinkService
		links, err = l.reader.List(ctx, subscription, resourceGroup)
		for _, p := range links {
			if l.links[p.ID.Key()] == nil {
				l.links[p.ID.Key()] = &ResourceChange[lb.PrivateLinkService]{Before: p, After: p}
			}
		}
		if f := armerror.FromError(err); f == nil || f.Class == armerror.Stale {
			l.listErrors[key] = err
		}
	}
	var items []lb.PrivateLinkService
	for _, id := range slices.Sorted(maps.Keys(l.links)) {
		p := l.links[id].After
		if p.Etag != "" && strings.EqualFold(p.ID.SubscriptionID, subscription) && strings.EqualFold(p.ID.ResourceGroup, resourceGroup) {
			items = append(items, p)
		}
	}
	return items, err
}

// Get implements desired.Azure.
func (l *LinkShadow) Get(_ context.Context, id lb.ResourceID) (lb.PrivateLinkService, error) {
	defer l.lock()()
	if known := l.links[id.Key()]; known != nil && known.After.Etag != "" {
		return known.After, nil
	}
	return lb.PrivateLinkService{}, newNotFound("private link service " + id.Name)
}

// Put implements desired.Azure. Azure would assign the alias.
func (l *LinkShadow) Put(_ context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error) {
	defer l.lock()()
	known := l.links[next.ID.Key()]
	if known == nil {
		known = &ResourceChange[lb.PrivateLinkService]{Before: lb.PrivateLinkService{ID: next.ID}}
		l.links[next.ID.Key()] = known
	}
	next.Etag, next.Provisioning = cmp.Or(next.Etag, plannedEtag), lb.Succeeded
	known.After = next
	return next, nil
}

// Delete implements desired.Azure.
func (l *LinkShadow) Delete(_ context.Context, p lb.PrivateLinkService) error {
	defer l.lock()()
	if known := l.links[p.ID.Key()]; known != nil {
		known.After = lb.PrivateLinkService{ID: p.ID}
	}
	return nil
}

// DeleteConnection implements desired.Azure.
func (l *LinkShadow) DeleteConnection(_ context.Context, of lb.ResourceID, connection lb.PrivateEndpointConnection) error {
	defer l.lock()()
	if known := l.links[of.Key()]; known != nil {
		known.After.Connections = slices.DeleteFunc(slices.Clone(known.After.Connections), func(c lb.PrivateEndpointConnection) bool { return c.Name == connection.Name })
	}
	return nil
}

// GetSubnet implements desired.Azure.
func (l *LinkShadow) GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error) {
	defer l.lock()()
	key := strings.ToLower(lb.Subnet{Network: network, Name: name}.String())
	if known := l.subnets[key]; known != nil {
		return known.After, nil
	}
	subnet, err := l.reader.GetSubnet(ctx, network, name)
	if err == nil {
		l.subnets[key] = &ResourceChange[lb.Subnet]{Before: subnet, After: subnet}
	}
	return subnet, err
}

// OpenSubnet implements desired.Azure.
func (l *LinkShadow) OpenSubnet(_ context.Context, next lb.Subnet) (lb.Subnet, error) {
	defer l.lock()()
	next.LinkPolicies = false
	if known := l.subnets[strings.ToLower(next.String())]; known != nil {
		known.After = next
	}
	return next, nil
}

func (l *LinkShadow) listChanges() (links []ResourceChange[lb.PrivateLinkService], subnets []ResourceChange[lb.Subnet]) {
	if l == nil {
		return nil, nil
	}
	defer l.lock()()
	return sortChanges(l.links), sortChanges(l.subnets)
}

// cachedLinks caches reads, within the shared limit.
type cachedLinks struct {
	privatelink.Azure
	cache *readCache
}

// List implements LinkReader.
func (c cachedLinks) List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error) {
	return readCached(ctx, c.cache, func() ([]lb.PrivateLinkService, error) { return c.Azure.List(ctx, subscription, resourceGroup) },
		"private link services", subscription, resourceGroup)
}

// GetSubnet implements LinkReader.
func (c cachedLinks) GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error) {
	return readCached(ctx, c.cache, func() (lb.Subnet, error) { return c.Azure.GetSubnet(ctx, network, name) }, "subnet", network.Key(), name)
}
