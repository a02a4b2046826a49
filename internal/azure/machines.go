// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"weir.dev/weir/internal/lb"
)

// AvailabilitySet returns the availability set of a VM by its node's spec.providerID; may be empty.
// It rejects members of scale sets.
func (c *Client) AvailabilitySet(ctx context.Context, providerID string) (string, error) {
	scaleSet, id, err := lb.VMSetOfProviderID(providerID)
	if err == nil && scaleSet != "" {
		err = errors.New("providerID " + providerID + ": a member of scale set " + scaleSet + " is in no availability set")
	}
	if err != nil {
		return "", rejectRequest(codeInvalidID, err)
	}
	doc, err := c.ReadResource(ctx, Resource{ID: id})
	if err != nil {
		return "", err
	}
	var vm struct {
		Properties struct {
			AvailabilitySet struct {
				ID string `json:"id"`
			} `json:"availabilitySet"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(doc.Text, &vm); err != nil {
		return "", unexpectedResponse(target{id: id})
	}
	set := vm.Properties.AvailabilitySet.ID
	return set[strings.LastIndexByte(set, '/')+1:], nil
}
