// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

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

// attachment is a network interface and the machine that has it.
type attachment struct{ name, machine string }

// interfacesOf returns the machines of a resource group's network interfaces, by the names of
// those in lower case. A group that is gone has none.
func (c *Client) interfacesOf(ctx context.Context, subscription, resourceGroup string) (map[string]string, error) {
	all := ofAll(lb.TypeNetworkInterface, subscription, resourceGroup)
	found, err := list(ctx, c, all, func(clients *armnetwork.ClientFactory) *runtime.Pager[armnetwork.InterfacesClientListResponse] {
		return clients.NewInterfacesClient().NewListPager(resourceGroup, nil)
	}, func(page armnetwork.InterfacesClientListResponse) []*armnetwork.Interface {
		return page.Value
	}, func(item *armnetwork.Interface) (attachment, error) {
		id, err := listed(all, item.ID)
		if err != nil || item.Properties == nil {
			return attachment{}, err
		}
		return attachment{strings.ToLower(id.Name), lb.MachineKey(codec.SubResourceID(item.Properties.VirtualMachine))}, nil
	})
	machines := make(map[string]string, len(found))
	for _, a := range found {
		machines[a.name] = a.machine
	}
	if f := fault.From(err); f != nil && f.Class == fault.Stale {
		return machines, nil
	}
	return machines, err
}
