// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/azure/sdk"
	"weir.dev/weir/internal/lb"
)

// GetSecurityGroup reads a network security group. An error carries a *fault.Fault: stale
// if it is gone.
func (c *Client) GetSecurityGroup(ctx context.Context, id lb.ResourceID) (lb.SecurityGroup, error) {
	if err := checkType(lb.TypeSecurityGroup, id); err != nil {
		return lb.SecurityGroup{}, err
	}
	resp, err := ask(ctx, c, target{id: id}, func(ctx context.Context, of *sdk.Clients) (armnetwork.SecurityGroupsClientGetResponse, error) {
		return of.Groups.Get(ctx, id.ResourceGroup, id.Name, nil)
	})
	if err != nil {
		return lb.SecurityGroup{}, err
	}
	return decodedSecurityGroup(id, &resp.SecurityGroup)
}

func decodedSecurityGroup(id lb.ResourceID, shown *armnetwork.SecurityGroup) (lb.SecurityGroup, error) {
	if shown.Properties == nil || !shows(id.String(), shown.ID, shown.Name) {
		return lb.SecurityGroup{}, notThat(target{id: id})
	}
	return codec.DecodeSecurityGroup(id, shown), nil
}

// PutSecurityGroup writes a security group that came from a read, as PutLoadBalancer
// writes a load balancer. None is ever made: subnets would have to be given it.
func (c *Client) PutSecurityGroup(ctx context.Context, g lb.SecurityGroup) (lb.SecurityGroup, error) {
	if err := checkType(lb.TypeSecurityGroup, g.ID); err != nil {
		return lb.SecurityGroup{}, err
	}
	origin, read := g.Origin.(*armnetwork.SecurityGroup)
	this := &call{op: opPut, target: target{id: g.ID}}
	if !read {
		return lb.SecurityGroup{}, refusal(codeUnread, fmt.Errorf("write %s: it was not read before, so what else it holds would be lost", this.target))
	}
	if err := c.checkRead(this.target, opPut, read, g.Etag); err != nil {
		return lb.SecurityGroup{}, err
	}
	body := codec.EncodeSecurityGroup(g, origin)
	resp, err := carryOut(ctx, c, this, g.Etag, func(ctx context.Context, of *sdk.Clients) (*runtime.Poller[armnetwork.SecurityGroupsClientCreateOrUpdateResponse], error) {
		return of.Groups.BeginCreateOrUpdate(ctx, g.ID.ResourceGroup, g.ID.Name, body, nil)
	})
	if err != nil {
		return lb.SecurityGroup{}, err
	}
	return decodedSecurityGroup(g.ID, &resp.SecurityGroup)
}
