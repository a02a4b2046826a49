// SPDX-License-Identifier: Apache-2.0

// Package machines reads and writes what makes machines members of pools of network interfaces:
// interfaces, the models of scale sets, and their instances. All of it goes through an azure.Client,
// whose gates, retries and guards are those of all requests.
package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
)

// Client reads and writes them. It is safe for concurrent use. Every error of it carries a
// *fault.Fault: stale if what was asked for is gone; one of a write whose code is OutcomeUnknown says
// that the write may have landed.
type Client struct{ arm *azure.Client }

// New returns a Client that sends its requests by another.
func New(arm *azure.Client) *Client { return &Client{arm} }

// ListInterfaces reads all network interfaces of a resource group, but those of scale sets' uniform
// instances, with one request a page.
func (c *Client) ListInterfaces(ctx context.Context, subscription, resourceGroup string) ([]lb.NetworkInterface, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeNetworkInterface}
	return all(ctx, c, azure.Resource{ID: place}, place, codec.DecodeInterface)
}

// GetInterface reads a network interface.
func (c *Client) GetInterface(ctx context.Context, id lb.ResourceID) (lb.NetworkInterface, error) {
	shown, err := one(ctx, c, azure.Resource{ID: id}, id, codec.DecodeInterface)
	shown.Etag = cmp.Or(shown.Etag, lb.NoEtag)
	return shown, err
}

// PrimaryInterface reads which network interface of a virtual machine is its primary one, or the only
// one: it may be in another resource group. It is zero if the machine names none.
func (c *Client) PrimaryInterface(ctx context.Context, vm lb.ResourceID) (lb.ResourceID, error) {
	return one(ctx, c, azure.Resource{ID: vm}, vm, decodePrimary)
}

func decodePrimary(_ lb.ResourceID, shown codec.Document) (none lb.ResourceID, err error) {
	var vm struct {
		Properties struct {
			NetworkProfile struct {
				Interfaces []struct {
					ID         string `json:"id"`
					Properties struct {
						Primary bool `json:"primary"`
					} `json:"properties"`
				} `json:"networkInterfaces"`
			} `json:"networkProfile"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(shown.Text, &vm); err != nil {
		return none, err
	}
	all := vm.Properties.NetworkProfile.Interfaces
	for _, i := range all {
		if i.Properties.Primary || len(all) == 1 {
			return lb.ParseResourceID(i.ID, lb.TypeNetworkInterface)
		}
	}
	return none, nil
}

// PutInterface gives an interface that was read other pools, guarded by its Etag, waits until Azure
// is done, and returns what Azure then shows. All else stays as it was read.
func (c *Client) PutInterface(ctx context.Context, next lb.NetworkInterface) (lb.NetworkInterface, error) {
	return write(ctx, c, azure.Resource{ID: next.ID}, http.MethodPut, &next.Origin, next.Etag, func() (any, error) { return codec.EncodeInterface(next) },
		next.ID, codec.DecodeInterface)
}

// ListScaleSets reads all scale sets of a resource group. Those of a list may have no Etag: one that
// is to be written is read by itself.
func (c *Client) ListScaleSets(ctx context.Context, subscription, resourceGroup string) ([]lb.ScaleSet, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeScaleSet}
	return all(ctx, c, azure.Resource{ID: place}, place, codec.DecodeScaleSet)
}

// GetScaleSet reads a scale set.
func (c *Client) GetScaleSet(ctx context.Context, id lb.ResourceID) (lb.ScaleSet, error) {
	shown, err := one(ctx, c, azure.Resource{ID: id}, id, codec.DecodeScaleSet)
	shown.Etag = cmp.Or(shown.Etag, lb.NoEtag)
	return shown, err
}

// PatchModel gives the model of a scale set that was read other pools, as PutInterface does an
// interface, with a PATCH, or with a PUT where a PATCH would lose properties. No instance has them by that alone.
func (c *Client) PatchModel(ctx context.Context, next lb.ScaleSet) (lb.ScaleSet, error) {
	method := http.MethodPatch
	if codec.NeedsPut(next) {
		method = http.MethodPut
	}
	return write(ctx, c, azure.Resource{ID: next.ID}, method, &next.Origin, next.Etag, func() (any, error) { return codec.EncodeModel(next) },
		next.ID, codec.DecodeScaleSet)
}

// ListInstances reads all instances of a uniform scale set. As of scale sets, one that is to be
// written is read by itself.
func (c *Client) ListInstances(ctx context.Context, scaleSet lb.ResourceID) ([]lb.Instance, error) {
	return all(ctx, c, azure.Resource{ID: scaleSet, Child: "virtualMachines"}, scaleSet, codec.DecodeInstance)
}

// GetInstance reads an instance of a uniform scale set.
func (c *Client) GetInstance(ctx context.Context, scaleSet lb.ResourceID, id string) (lb.Instance, error) {
	shown, err := one(ctx, c, instance(scaleSet, id), scaleSet, codec.DecodeInstance)
	shown.Etag = cmp.Or(shown.Etag, lb.NoEtag)
	return shown, err
}

// PutInstance gives an instance that was read other pools, as PutInterface does an interface.
func (c *Client) PutInstance(ctx context.Context, next lb.Instance) (lb.Instance, error) {
	return write(ctx, c, instance(next.ScaleSet, next.ID), http.MethodPut, &next.Origin, next.Etag, func() (any, error) { return codec.EncodeInstance(next) },
		next.ScaleSet, codec.DecodeInstance)
}

// Upgrade has instances brought to all that the model of their scale set says, and waits until Azure
// is done. It does nothing for none: to Azure an absent list would be an error, and "*" is all.
func (c *Client) Upgrade(ctx context.Context, scaleSet lb.ResourceID, instances []string) error {
	if len(instances) == 0 {
		return nil
	}
	return c.arm.Upgrade(ctx, scaleSet, instances)
}

func instance(scaleSet lb.ResourceID, id string) azure.Resource {
	return azure.Resource{ID: scaleSet, Child: "virtualMachines/" + id}
}

// decoder makes a value of what Azure shows; the place is that of what was asked for.
type decoder[T any] func(place lb.ResourceID, shown codec.Document) (T, error)

func one[T any](ctx context.Context, c *Client, r azure.Resource, place lb.ResourceID, decode decoder[T]) (T, error) {
	shown, err := c.arm.Read(ctx, r)
	if err != nil {
		var none T
		return none, err
	}
	return decoded(place, shown, decode)
}

func all[T any](ctx context.Context, c *Client, r azure.Resource, place lb.ResourceID, decode decoder[T]) ([]T, error) {
	shown, err := c.arm.List(ctx, r)
	if err != nil {
		return nil, err
	}
	list := make([]T, 0, len(shown))
	for _, item := range shown {
		one, err := decoded(place, item, decode)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// write writes what encode returns, which edits the document at origin.
func write[T any](ctx context.Context, c *Client, r azure.Resource, method string, origin *any, etag string, encode func() (any, error),
	place lb.ResourceID, decode decoder[T],
) (T, error) {
	if *origin == nil {
		*origin = codec.Document{} // nothing is made here
	}
	shown, err := c.arm.Write(ctx, r, method, origin, etag, encode)
	if err != nil {
		var none T
		return none, err
	}
	return decoded(place, shown, decode)
}

// decoded refuses an answer that is not in the form of what was asked for.
func decoded[T any](place lb.ResourceID, shown codec.Document, decode decoder[T]) (T, error) {
	value, err := decode(place, shown)
	if err != nil {
		var none T
		return none, fault.Classify(fault.Answer{OutcomeUnknown: true}, fmt.Errorf("%s: the answer is in another form: %w", place.Type, err))
	}
	return value, nil
}
