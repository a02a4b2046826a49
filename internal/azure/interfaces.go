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

// Machines returns a pool with the virtual machine of each network interface in it. The
// interfaces of a scale set's uniform instances name theirs; of the others each resource group
// is listed once, see package attached. One that is not there, or that no machine has, stays without. An error
// carries a *fault.Fault.
func (c *Client) Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	return c.attached.Of(pool, time.Now(), func(subscription, resourceGroup string) (attached.Machines, error) {
		return c.interfacesOf(ctx, subscription, resourceGroup)
	})
}

// interfacesOf returns the machines of a resource group's network interfaces, by the names of
// those in lower case. A group that is gone has none.
func (c *Client) interfacesOf(ctx context.Context, subscription, resourceGroup string) (attached.Machines, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeNetworkInterface}
	shown, err := c.List(ctx, Resource{ID: place})
	machines := make(attached.Machines, len(shown))
	for _, item := range shown {
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
