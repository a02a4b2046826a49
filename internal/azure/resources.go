// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"

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

// GetPublicIP reads a public IP.
func (c *Client) GetPublicIP(ctx context.Context, id lb.ResourceID) (lb.PublicIP, error) {
	if err := checkType(lb.TypePublicIP, id); err != nil {
		return lb.PublicIP{}, err
	}
	doc, err := c.getDocument(ctx, target{id: id})
	if err != nil {
		return lb.PublicIP{}, err
	}
	return decodeDocument(target{id: id}, id, doc, codec.DecodePublicIP)
}

// ListPublicIPs reads the public IPs of a resource group, except those of scale set instances.
func (c *Client) ListPublicIPs(ctx context.Context, subscription, resourceGroup string) ([]lb.PublicIP, error) {
	return listDecoded(ctx, c, lb.TypePublicIP, subscription, resourceGroup, codec.DecodePublicIP)
}

// PutPublicIP writes a public IP, like PutLoadBalancer. Address and UsedBy are read-only.
func (c *Client) PutPublicIP(ctx context.Context, ip lb.PublicIP) (lb.PublicIP, error) {
	if err := checkType(lb.TypePublicIP, ip.ID); err != nil {
		return lb.PublicIP{}, err
	}
	t := target{id: ip.ID}
	if err := c.checkRead(t, opPut, ip.Origin != nil, ip.Etag); err != nil {
		return lb.PublicIP{}, err
	}
	doc, err := c.writeAndWait(ctx, newPut(t, &ip.Origin, ip.Etag, func() (any, error) { return codec.EncodePublicIP(ip) }))
	if err != nil {
		return lb.PublicIP{}, err
	}
	return decodeDocument(t, ip.ID, doc, codec.DecodePublicIP)
}

// DeletePublicIP is like DeleteLoadBalancer. Azure rejects the deletion of an address in use.
func (c *Client) DeletePublicIP(ctx context.Context, ip lb.PublicIP) error {
	if err := checkType(lb.TypePublicIP, ip.ID); err != nil {
		return err
	}
	return c.deleteResource(ctx, target{id: ip.ID}, ip.Origin, ip.Etag)
}

// GetSecurityGroup reads a network security group.
func (c *Client) GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error) {
	if err := checkType(lb.TypeSecurityGroup, id); err != nil {
		return lb.SecurityGroup{}, err
	}
	doc, err := c.getDocument(ctx, target{id: id})
	if err != nil {
		return lb.SecurityGroup{}, err
	}
	return decodeDocument(target{id: id}, id, doc, codec.DecodeSecurityGroup)
}

// PutSecurityGroup updates a security group that was read, like PutLoadBalancer. It never creates
// one, since subnets would have to refer to it.
func (c *Client) PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error) {
	if err := checkType(lb.TypeSecurityGroup, g.ID); err != nil {
		return lb.SecurityGroup{}, err
	}
	t := target{id: g.ID}
	if g.Origin == nil {
		return lb.SecurityGroup{}, rejectRequest(codeResourceNotRead, fmt.Errorf("write %s: it was not read before, so what else it holds would be lost", t))
	}
	if err := c.checkRead(t, opPut, true, g.Etag); err != nil {
		return lb.SecurityGroup{}, err
	}
	doc, err := c.writeAndWait(ctx, newPut(t, &g.Origin, g.Etag, func() (any, error) { return codec.EncodeSecurityGroup(g) }))
	if err != nil {
		return lb.SecurityGroup{}, err
	}
	return decodeDocument(t, g.ID, doc, codec.DecodeSecurityGroup)
}
