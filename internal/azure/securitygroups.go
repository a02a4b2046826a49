// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

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
