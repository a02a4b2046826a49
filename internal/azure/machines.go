// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/network/armnetwork/v9"

	"weir.dev/weir/internal/azure/codec"
	"weir.dev/weir/internal/lb"
)

// computeVersion is the API version of the one request to Microsoft.Compute.
const computeVersion = "2024-07-01"

// machine is what Weir reads of a virtual machine.
type machine struct {
	ID         *string `json:"id"`
	Properties *struct {
		AvailabilitySet *armnetwork.SubResource `json:"availabilitySet"`
	} `json:"properties"`
}

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
	this := &call{op: opGet, target: target{id: id}}
	vm, err := c.machine(withCall(ctx, this), id)
	if err != nil {
		return "", classify(ctx, this, err)
	}
	if vm.Properties == nil || !shows(id.String(), vm.ID, nil) {
		return "", notThat(this.target)
	}
	return codec.NameIn(vm.Properties.AvailabilitySet), nil
}

// machine reads a virtual machine through the pipeline that all requests take.
func (c *Client) machine(ctx context.Context, id lb.ResourceID) (vm machine, err error) {
	client, err := arm.NewClient("weir", "v0.0.0", c.opts.Credential, c.arm)
	if err != nil {
		return machine{}, err
	}
	ctx, end := runtime.StartSpan(ctx, "VirtualMachines.Get", client.Tracer(), nil)
	defer func() { end(err) }()
	req, err := runtime.NewRequest(ctx, http.MethodGet, runtime.JoinPaths(client.Endpoint(), id.String()))
	if err != nil {
		return machine{}, err
	}
	query := req.Raw().URL.Query()
	query.Set("api-version", computeVersion)
	req.Raw().URL.RawQuery = query.Encode()
	resp, err := client.Pipeline().Do(req) //nolint:bodyclose // the pipeline has read the body to its end
	if err != nil {
		return machine{}, err
	}
	if !runtime.HasStatusCode(resp, http.StatusOK) {
		return machine{}, runtime.NewResponseError(resp)
	}
	return vm, runtime.UnmarshalAsJSON(resp, &vm)
}
