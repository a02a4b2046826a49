// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"weir.dev/weir/internal/azure/attached"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// Machines resolves the virtual machines of a pool's network interfaces; see package attached.
// Missing and unattached interfaces get none.
func (c *Client) Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return c.attached.Of(pool, time.Now(), func(subscription, resourceGroup string) (attached.Machines, error) {
		return c.interfacesOf(ctx, subscription, resourceGroup)
	})
}

// interfacesOf is keyed by lower-case name. A missing group has none.
func (c *Client) interfacesOf(ctx context.Context, subscription, resourceGroup string) (attached.Machines, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeNetworkInterface}
	docs, err := c.List(ctx, Resource{ID: place})
	machines := make(attached.Machines, len(docs))
	for _, item := range docs {
		i, err := codec.DecodeInterface(place, item)
		if err != nil {
			return nil, notThat(target{id: place})
		}
		one := attached.Interface{Machine: i.Machine, Addresses: map[string]netip.Addr{}}
		for _, ip := range i.IPConfigurations {
			one.Addresses[strings.ToLower(ip.Name)] = ip.IP
		}
		machines[strings.ToLower(i.ID.Name)] = one
	}
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return machines, nil
	}
	return machines, err
}
