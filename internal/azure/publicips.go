// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/lb"
)

// GetPublicIP reads a public IP. An error carries a *fault.Fault: stale if it is gone.
func (c *Client) GetPublicIP(ctx context.Context, id lb.ResourceID) (lb.PublicIP, error) {
	if err := checkType(lb.TypePublicIP, id); err != nil {
		return lb.PublicIP{}, err
	}
	resp, err := ask(ctx, c, target{id: id}, func(ctx context.Context, of *sdk.Clients) (armnetwork.PublicIPAddressesClientGetResponse, error) {
		return of.IPs.Get(ctx, id.ResourceGroup, id.Name, nil)
	})
	if err != nil {
		return lb.PublicIP{}, err
	}
	return decodedPublicIP(id, &resp.PublicIPAddress)
}

func decodedPublicIP(id lb.ResourceID, shown *armnetwork.PublicIPAddress) (lb.PublicIP, error) {
	if shown.Properties == nil || !shows(id.String(), shown.ID, shown.Name) {
		return lb.PublicIP{}, notThat(target{id: id})
	}
	return codec.DecodePublicIP(id, shown), nil
}

// ListPublicIPs reads all public IPs of a resource group, but those of scale sets'
// instances. An error carries a *fault.Fault: stale if the group is gone.
func (c *Client) ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error) {
	all := ofAll(lb.TypePublicIP, subscription, resourceGroup)
	return list(ctx, c, all, func(of *sdk.Clients) *runtime.Pager[armnetwork.PublicIPAddressesClientListResponse] {
		return of.IPs.NewListPager(resourceGroup, nil)
	}, func(page armnetwork.PublicIPAddressesClientListResponse) []*armnetwork.PublicIPAddress {
		return page.Value
	}, func(item *armnetwork.PublicIPAddress) (lb.PublicIP, error) {
		id, err := listed(all, item.ID)
		if err != nil {
			return lb.PublicIP{}, err
		}
		return decodedPublicIP(id, item)
	})
}

// PutPublicIP writes a public IP as PutLoadBalancer writes a load balancer. Its Address
// and UsedBy are Azure's to say, and are not written.
func (c *Client) PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	if err := checkType(lb.TypePublicIP, ip.ID); err != nil {
		return lb.PublicIP{}, err
	}
	origin, read := ip.Origin.(*armnetwork.PublicIPAddress)
	this := &call{op: opPut, target: target{id: ip.ID}, creates: !read}
	if err := c.checkRead(this.target, opPut, read, ip.Etag); err != nil {
		return lb.PublicIP{}, err
	}
	body := codec.EncodePublicIP(ip, origin)
	resp, err := carryOut(ctx, c, this, ip.Etag, func(ctx context.Context, of *sdk.Clients) (*runtime.Poller[armnetwork.PublicIPAddressesClientCreateOrUpdateResponse], error) {
		return of.IPs.BeginCreateOrUpdate(ctx, ip.ID.ResourceGroup, ip.ID.Name, body, nil)
	})
	if err != nil {
		return lb.PublicIP{}, err
	}
	return decodedPublicIP(ip.ID, &resp.PublicIPAddress)
}

// DeletePublicIP deletes a public IP that came from a read, as DeleteLoadBalancer does.
// Azure refuses it while something has it.
func (c *Client) DeletePublicIP(ctx context.Context, ip lb.PublicIP) error {
	if err := checkType(lb.TypePublicIP, ip.ID); err != nil {
		return err
	}
	this := &call{op: opDelete, target: target{id: ip.ID}}
	if err := c.checkRead(this.target, opDelete, ip.Origin != nil, ip.Etag); err != nil {
		return err
	}
	_, err := carryOut(ctx, c, this, ip.Etag, func(ctx context.Context, of *sdk.Clients) (*runtime.Poller[armnetwork.PublicIPAddressesClientDeleteResponse], error) {
		return of.IPs.BeginDelete(ctx, ip.ID.ResourceGroup, ip.ID.Name, nil)
	})
	return unlessGone(err)
}
