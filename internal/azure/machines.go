// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// AvailabilitySet returns the name of the availability set of the virtual machine that a
// node's spec.providerID names; empty if it is in none. A member of a scale set is
// refused: lb.VMSetOfProviderID knows its scale set. An error carries a *fault.Fault:
// stale if the machine is gone.
func (c *Client) AvailabilitySet(ctx context.Context, providerID string) (string, error) {
	scaleSet, id, err := lb.VMSetOfProviderID(providerID)
	if err == nil && scaleSet != "" {
		err = errors.New("providerID " + providerID + ": a member of scale set " + scaleSet + " is in no availability set")
	}
	if err != nil {
		return "", refusal(codeInvalidID, err)
	}
	shown, err := c.Read(ctx, Resource{ID: id})
	if err != nil {
		return "", err
	}
	var vm struct {
		Properties struct {
			AvailabilitySet *armnetwork.SubResource `json:"availabilitySet"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(shown, &vm); err != nil {
		return "", notThat(target{id: id})
	}
	return codec.NameIn(vm.Properties.AvailabilitySet), nil
}
