// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"strings"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// Machines returns a pool with the virtual machine of each network interface in it. The
// interfaces of a scale set's uniform instances name theirs; of the others each resource group
// is listed once. One that is not there, or that no machine has, stays without. An error
// carries a *fault.Fault.
func (c *Client) Machines(ctx context.Context, pool lb.Pool) (lb.Pool, error) {
	addresses := make([]lb.Address, len(pool.Addresses))
	copy(addresses, pool.Addresses)
	groups := map[lb.ResourceID]map[string]string{}
	for i := range addresses {
		machine, nic, err := lb.MachineOfInterface(addresses[i].Interface)
		if machine != "" || err != nil {
			addresses[i].Machine = machine
			continue
		}
		key := lb.ResourceID{SubscriptionID: strings.ToLower(nic.SubscriptionID), ResourceGroup: strings.ToLower(nic.ResourceGroup)}
		if groups[key] == nil {
			if groups[key], err = c.interfacesOf(ctx, nic.SubscriptionID, nic.ResourceGroup); err != nil {
				return lb.Pool{}, err
			}
		}
		addresses[i].Machine = groups[key][strings.ToLower(nic.Name)]
	}
	pool.Addresses = addresses
	return pool, nil
}

// interfacesOf returns the machines of a resource group's network interfaces, by the names of
// those in lower case. A group that is gone has none.
func (c *Client) interfacesOf(ctx context.Context, subscription, resourceGroup string) (map[string]string, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeNetworkInterface}
	shown, err := c.List(ctx, Resource{ID: place})
	machines := make(map[string]string, len(shown))
	for _, item := range shown {
		i, err := codec.DecodeInterface(place, item)
		if err != nil {
			return nil, notThat(target{id: place})
		}
		machines[strings.ToLower(i.ID.Name)] = i.Machine
	}
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return machines, nil
	}
	return machines, err
}
