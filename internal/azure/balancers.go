// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/azure/apart"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/lb"
)

// GetLoadBalancer reads a load balancer with all its parts. An error carries a
// *fault.Fault: stale if it is gone.
func (c *Client) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	if err := checkID(id); err != nil {
		return lb.LoadBalancer{}, err
	}
	var pools apart.Pools
	resp, err := ask(pools.Within(ctx), c, ofBalancer(id), func(ctx context.Context, of *sdk.Clients) (armnetwork.LoadBalancersClientGetResponse, error) {
		return of.Balancers.Get(ctx, id.ResourceGroup, id.Name, nil)
	})
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	pools.Rejoin(&resp.LoadBalancer)
	return decodedBalancer(id, &resp.LoadBalancer)
}

// decodedBalancer refuses an answer that is not the load balancer, as decoded does for a
// pool.
func decodedBalancer(id lb.LoadBalancerID, shown *armnetwork.LoadBalancer) (lb.LoadBalancer, error) {
	if shown.Properties == nil || !shows(id.String(), shown.ID, shown.Name) {
		return lb.LoadBalancer{}, notThat(ofBalancer(id))
	}
	return codec.DecodeLoadBalancer(id, shown), nil
}

// ListLoadBalancers reads all load balancers of a resource group. An error carries a
// *fault.Fault: stale if the group is gone.
func (c *Client) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	var pools apart.Pools
	all := ofAll(lb.TypeLoadBalancer, subscription, resourceGroup)
	return list(pools.Within(ctx), c, all, func(of *sdk.Clients) *runtime.Pager[armnetwork.LoadBalancersClientListResponse] {
		return of.Balancers.NewListPager(resourceGroup, nil)
	}, func(page armnetwork.LoadBalancersClientListResponse) []*armnetwork.LoadBalancer {
		pools.Rejoin(page.Value...)
		return page.Value
	}, func(item *armnetwork.LoadBalancer) (lb.LoadBalancer, error) {
		at, err := listed(all, item.ID)
		if err != nil {
			return lb.LoadBalancer{}, err
		}
		return decodedBalancer(lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Name: at.Name}, item)
	})
}

// PutLoadBalancer writes a load balancer, guarded by its Etag, waits until Azure is done,
// and returns what Azure then shows: it is for the caller to compare. One that came from
// a read keeps all that Weir does not model; one that was not read is made, if it does
// not exist. What it is given is not changed.
//
// An error carries a *fault.Fault. One whose code is OutcomeUnknown says that the
// write may have landed.
func (c *Client) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	if err := checkBalancer(b); err != nil {
		return lb.LoadBalancer{}, err
	}
	origin, read := b.Origin.(*armnetwork.LoadBalancer)
	this := &call{op: opPut, target: ofBalancer(b.ID), creates: !read}
	if err := c.checkRead(this.target, opPut, read, b.Etag); err != nil {
		return lb.LoadBalancer{}, err
	}
	body, err := codec.EncodeLoadBalancer(b, origin, c.opts.VirtualNetworkID)
	if errors.Is(err, codec.ErrNoVirtualNetwork) {
		return lb.LoadBalancer{}, refusal(codeNoVirtualNetwork, fmt.Errorf("write load balancer %s: %w", b.ID.Name, err))
	}
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	var pools apart.Pools
	ctx = pools.Within(ctx)
	a, err := send(ctx, c, this, b.Etag, func(ctx context.Context, of *sdk.Clients) (*runtime.Poller[balancerPut], error) {
		return of.Balancers.BeginCreateOrUpdate(ctx, b.ID.ResourceGroup, b.ID.Name, body, nil)
	})
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	resp, err := a.end(ctx, c.balancerLooks(b, codec.EtagIn(a.first), &pools))
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	pools.Rejoin(&resp.LoadBalancer)
	return decodedBalancer(b.ID, &resp.LoadBalancer)
}

type balancerPut = armnetwork.LoadBalancersClientCreateOrUpdateResponse

// checkBalancer refuses names that would become part of an id in the body and mean
// something else there.
func checkBalancer(b lb.LoadBalancer) error {
	if err := checkID(b.ID); err != nil {
		return err
	}
	for _, p := range b.Pools {
		if err := checkID(lb.PoolID{LoadBalancer: b.ID, Name: p.ID.Name}); err != nil {
			return err
		}
	}
	return nil
}

// DeleteLoadBalancer deletes a load balancer that came from a read, guarded by its Etag,
// and waits until Azure is done. It is no error if there is none. An error carries a
// *fault.Fault; one whose code is OutcomeUnknown says that it may be gone.
func (c *Client) DeleteLoadBalancer(ctx context.Context, b lb.LoadBalancer) error {
	if err := checkID(b.ID); err != nil {
		return err
	}
	this := &call{op: opDelete, target: ofBalancer(b.ID)}
	if err := c.checkRead(this.target, opDelete, b.Origin != nil, b.Etag); err != nil {
		return err
	}
	_, err := carryOut(ctx, c, this, b.Etag, func(ctx context.Context, of *sdk.Clients) (*runtime.Poller[armnetwork.LoadBalancersClientDeleteResponse], error) {
		return of.Balancers.BeginDelete(ctx, b.ID.ResourceGroup, b.ID.Name, nil)
	})
	return unlessGone(err)
}
