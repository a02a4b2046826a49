// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

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
