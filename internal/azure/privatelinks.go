// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// PrivateLinkClient is safe for concurrent use. Errors are like those of azure.Client.
type PrivateLinkClient struct{ arm *Client }

// NewPrivateLinkClient returns a Client.
func NewPrivateLinkClient(arm *Client) *PrivateLinkClient { return &PrivateLinkClient{arm} }

// Get reads a Private Link Service with its connections.
func (c *PrivateLinkClient) Get(ctx context.Context, id lb.ResourceID) (lb.PrivateLinkService, error) {
	return readOne(ctx, c.arm, Resource{ID: id}, id, codec.DecodePrivateLinkService)
}

// List reads all Private Link Services of a resource group.
func (c *PrivateLinkClient) List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypePrivateLinkService}
	return listAll(ctx, c.arm, Resource{ID: place}, place, codec.DecodePrivateLinkService)
}

// Put creates or updates a Private Link Service, guarded by its Etag, waits for the end and returns
// the result. Unmodeled properties are retained.
func (c *PrivateLinkClient) Put(ctx context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error) {
	return writeResource(ctx, c.arm, Resource{ID: next.ID}, http.MethodPut, &next.Origin, next.Etag, func() (any, error) { return codec.EncodePrivateLinkService(next) },
		next.ID, codec.DecodePrivateLinkService)
}

// Delete deletes a Private Link Service that was read and waits for the end. A missing one is no
// error. Connections must be deleted first (assumed).
func (c *PrivateLinkClient) Delete(ctx context.Context, p lb.PrivateLinkService) error {
	_, err := c.arm.WriteResource(ctx, Resource{ID: p.ID}, http.MethodDelete, &p.Origin, p.Etag, nil)
	return ignoreNotFound(err)
}

// DeleteConnection deletes a private endpoint connection and waits for the end. A missing one is no
// error. The private endpoint remains.
func (c *PrivateLinkClient) DeleteConnection(ctx context.Context, service lb.ResourceID, connection lb.PrivateEndpointConnection) error {
	at := Resource{ID: service, Child: "privateEndpointConnections/" + connection.Name}
	etag := connection.Etag
	if etag == "" { // lists may omit it (assumed)
		var resource struct {
			Etag string `json:"etag"`
		}
		document, err := c.arm.ReadResource(ctx, at)
		if err != nil {
			return ignoreNotFound(err)
		}
		if err := json.Unmarshal(document.Text, &resource); err != nil {
			return unexpectedFormat(service, err)
		}
		etag = cmp.Or(resource.Etag, lb.NoEtag)
	}
	resource := any(connection)
	_, err := c.arm.WriteResource(ctx, at, http.MethodDelete, &resource, etag, nil)
	return ignoreNotFound(err)
}

// GetSubnet reads a subnet of a virtual network.
func (c *PrivateLinkClient) GetSubnet(ctx context.Context, network lb.ResourceID, name string) (lb.Subnet, error) {
	return readOne(ctx, c.arm, subnetResource(network, name), network, codec.DecodeSubnet)
}

// OpenSubnet disables the network policies of a subnet that was read, like Put.
func (c *PrivateLinkClient) OpenSubnet(ctx context.Context, next lb.Subnet) (lb.Subnet, error) {
	next.LinkPolicies = false
	neverCreate(&next.Origin)
	return writeResource(ctx, c.arm, subnetResource(next.Network, next.Name), http.MethodPut, &next.Origin, next.Etag, func() (any, error) { return codec.EncodeSubnet(next) },
		next.Network, codec.DecodeSubnet)
}

func subnetResource(network lb.ResourceID, name string) Resource {
	return Resource{ID: network, Child: "subnets/" + name}
}
