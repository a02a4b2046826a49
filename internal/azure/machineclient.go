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

// MachineClient is safe for concurrent use. Errors are like those of azure.Client.
type MachineClient struct{ arm *Client }

// NewMachineClient returns a Client.
func NewMachineClient(arm *Client) *MachineClient { return &MachineClient{arm} }

// ListInterfaces reads all network interfaces of a resource group, except those of uniform
// instances.
func (c *MachineClient) ListInterfaces(ctx context.Context, subscription, resourceGroup string) ([]lb.NetworkInterface, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeNetworkInterface}
	return listAll(ctx, c.arm, Resource{ID: place}, place, codec.DecodeInterface)
}

// GetInterface reads a network interface.
func (c *MachineClient) GetInterface(ctx context.Context, id lb.ResourceID) (lb.NetworkInterface, error) {
	value, err := readOne(ctx, c.arm, Resource{ID: id}, id, codec.DecodeInterface)
	value.Etag = cmp.Or(value.Etag, lb.NoEtag)
	return value, err
}

// PrimaryInterface reads the ID of a VM's primary or only network interface, possibly in another
// resource group; zero if there is none.
func (c *MachineClient) PrimaryInterface(ctx context.Context, vm lb.ResourceID) (lb.ResourceID, error) {
	return readOne(ctx, c.arm, Resource{ID: vm}, vm, decodePrimary)
}

func decodePrimary(_ lb.ResourceID, doc codec.Document) (none lb.ResourceID, err error) {
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
	if err := json.Unmarshal(doc.Text, &vm); err != nil {
		return none, err
	}
	interfaces := vm.Properties.NetworkProfile.Interfaces
	for _, i := range interfaces {
		if i.Properties.Primary || len(interfaces) == 1 {
			return lb.ParseResourceID(i.ID, lb.TypeNetworkInterface)
		}
	}
	return none, nil
}

// PutInterface changes the pools of an interface, guarded by its Etag, waits for the end and
// returns the result. Other properties are retained.
func (c *MachineClient) PutInterface(ctx context.Context, next lb.NetworkInterface) (lb.NetworkInterface, error) {
	neverCreate(&next.Origin)
	return writeResource(ctx, c.arm, Resource{ID: next.ID}, http.MethodPut, &next.Origin, next.Etag, func() (any, error) { return codec.EncodeInterface(next) },
		next.ID, codec.DecodeInterface)
}

// ListScaleSets reads all scale sets of a resource group, possibly without Etags: read one again
// before writing it.
func (c *MachineClient) ListScaleSets(ctx context.Context, subscription, resourceGroup string) ([]lb.ScaleSet, error) {
	place := lb.ResourceID{SubscriptionID: subscription, ResourceGroup: resourceGroup, Type: lb.TypeScaleSet}
	return listAll(ctx, c.arm, Resource{ID: place}, place, codec.DecodeScaleSet)
}

// GetScaleSet reads a scale set.
func (c *MachineClient) GetScaleSet(ctx context.Context, id lb.ResourceID) (lb.ScaleSet, error) {
	value, err := readOne(ctx, c.arm, Resource{ID: id}, id, codec.DecodeScaleSet)
	value.Etag = cmp.Or(value.Etag, lb.NoEtag)
	return value, err
}

// PatchModel changes the pools of a model, like PutInterface. It uses PUT if a PATCH would lose
// properties. Instances do not change.
func (c *MachineClient) PatchModel(ctx context.Context, next lb.ScaleSet) (lb.ScaleSet, error) {
	neverCreate(&next.Origin)
	method := http.MethodPatch
	if codec.NeedsPut(next) {
		method = http.MethodPut
	}
	return writeResource(ctx, c.arm, Resource{ID: next.ID}, method, &next.Origin, next.Etag, func() (any, error) { return codec.EncodeModel(next) },
		next.ID, codec.DecodeScaleSet)
}

// ListInstances reads all instances of a uniform scale set, possibly without Etags.
func (c *MachineClient) ListInstances(ctx context.Context, scaleSet lb.ResourceID) ([]lb.Instance, error) {
	return listAll(ctx, c.arm, Resource{ID: scaleSet, Child: "virtualMachines"}, scaleSet, codec.DecodeInstance)
}

// GetInstance reads an instance of a uniform scale set.
func (c *MachineClient) GetInstance(ctx context.Context, scaleSet lb.ResourceID, id string) (lb.Instance, error) {
	value, err := readOne(ctx, c.arm, instanceResource(scaleSet, id), scaleSet, codec.DecodeInstance)
	value.Etag = cmp.Or(value.Etag, lb.NoEtag)
	return value, err
}

// PutInstance changes the pools of an instance, like PutInterface.
func (c *MachineClient) PutInstance(ctx context.Context, next lb.Instance) (lb.Instance, error) {
	neverCreate(&next.Origin)
	return writeResource(ctx, c.arm, instanceResource(next.ScaleSet, next.ID), http.MethodPut, &next.Origin, next.Etag, func() (any, error) { return codec.EncodeInstance(next) },
		next.ScaleSet, codec.DecodeInstance)
}

// UpgradeInstances upgrades instances to the whole model and waits for the end. Azure rejects an absent
// list, and "*" means all.
func (c *MachineClient) UpgradeInstances(ctx context.Context, scaleSet lb.ResourceID, instances []string) error {
	if len(instances) == 0 {
		return nil
	}
	return c.arm.UpgradeInstances(ctx, scaleSet, instances)
}

func instanceResource(scaleSet lb.ResourceID, id string) Resource {
	return Resource{ID: scaleSet, Child: "virtualMachines/" + id}
}
