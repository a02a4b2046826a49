// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// ResolveMachines resolves the virtual machines of a pool's network interfaces; see interfaceCache.
// Missing and unattached interfaces get none.
func (c *Client) ResolveMachines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return c.attached.ResolveMachines(pool, time.Now(), func(subscription, resourceGroup string) (interfaceMap, error) {
		return c.listInterfaces(ctx, subscription, resourceGroup)
	})
}

// listInterfaces is keyed by lower-case name. A missing group has none.
func (c *Client) listInterfaces(ctx context.Context, subscription, resourceGroup string) (interfaceMap, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeNetworkInterface}
	docs, err := c.ListResources(ctx, Resource{ID: place})
	machines := make(interfaceMap, len(docs))
	for _, item := range docs {
		i, err := codec.DecodeInterface(place, item)
		if err != nil {
			return nil, unexpectedResponse(target{id: place})
		}
		cached := cachedInterface{Machine: i.Machine, Addresses: map[string]netip.Addr{}}
		for _, ip := range i.IPConfigurations {
			cached.Addresses[strings.ToLower(ip.Name)] = ip.IP
		}
		machines[strings.ToLower(i.ID.Name)] = cached
	}
	if f := armerror.FromError(err); f != nil && f.Class == armerror.Stale {
		return machines, nil
	}
	return machines, err
}
