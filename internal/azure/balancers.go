// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// GetLoadBalancer reads a load balancer.
func (c *Client) GetLoadBalancer(ctx context.Context, id lb.LoadBalancerID) (lb.LoadBalancer, error) {
	if err := checkID(id); err != nil {
		return lb.LoadBalancer{}, err
	}
	doc, err := c.getDocument(ctx, loadBalancerTarget(id))
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	return decodeDocument(loadBalancerTarget(id), id, doc, codec.DecodeLoadBalancer)
}

// ListLoadBalancers reads all load balancers of a resource group.
func (c *Client) ListLoadBalancers(ctx context.Context, subscription, resourceGroup string) ([]lb.LoadBalancer, error) {
	return listDecoded(ctx, c, lb.TypeLoadBalancer, subscription, resourceGroup, func(at lb.ResourceID, doc codec.Document) (lb.LoadBalancer, error) {
		return codec.DecodeLoadBalancer(lb.LoadBalancerID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Name: at.Name}, doc)
	})
}

// PutLoadBalancer creates or updates a load balancer, guarded by its Etag, waits for the end, and
// returns the result for the caller to compare. Unmodeled properties are retained.
func (c *Client) PutLoadBalancer(ctx context.Context, b lb.LoadBalancer) (lb.LoadBalancer, error) {
	if err := checkLoadBalancer(b); err != nil {
		return lb.LoadBalancer{}, err
	}
	t := loadBalancerTarget(b.ID)
	if err := c.checkRead(t, opPut, b.Origin != nil, b.Etag); err != nil {
		return lb.LoadBalancer{}, err
	}
	a, err := c.startWrite(ctx, newPut(t, &b.Origin, b.Etag, func() (any, error) { return codec.EncodeLoadBalancer(b, c.opts.VirtualNetworkID) }))
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	doc, err := a.waitResult(ctx, c.newLoadBalancerReader(b, a))
	if err != nil {
		return lb.LoadBalancer{}, err
	}
	return decodeDocument(t, b.ID, doc, codec.DecodeLoadBalancer)
}

func checkLoadBalancer(b lb.LoadBalancer) error {
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

// DeleteLoadBalancer deletes a load balancer that was read, guarded by its Etag, and waits for the
// end. A missing one is no error.
func (c *Client) DeleteLoadBalancer(ctx context.Context, b lb.LoadBalancer) error {
	if err := checkID(b.ID); err != nil {
		return err
	}
	return c.deleteResource(ctx, loadBalancerTarget(b.ID), b.Origin, b.Etag)
}
