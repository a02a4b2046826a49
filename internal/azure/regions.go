// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"weir.dev/weir/internal/zones"
)

// version: https://learn.microsoft.com/rest/api/resources/subscriptions/list-locations
const version = "2022-12-01"

type locations struct {
	Value *[]struct {
		Name  string `json:"name"`
		Zones []struct {
			LogicalZone string `json:"logicalZone"`
		} `json:"availabilityZoneMappings"`
	} `json:"value"`
}

// ListZones returns the logical zones of each region, none for a region without zones. It needs the action
// Microsoft.Resources/subscriptions/locations/read on the subscription.
func ListZones(ctx context.Context, client *Client, subscription string) (map[string][]string, error) {
	raw, err := client.NewRawClient()
	if err != nil {
		return nil, err
	}
	resp, err := raw.Send(ctx, RawRequest{Method: http.MethodGet, Path: "/subscriptions/" + url.PathEscape(subscription) + "/locations", Version: version})
	if err != nil {
		return nil, err
	}
	if resp.Status != http.StatusOK {
		err = fmt.Errorf("%d %s: %s", resp.Status, strings.Join(resp.Codes, " "), resp.Message)
		if resp.Status < http.StatusInternalServerError && resp.Status != http.StatusTooManyRequests && resp.Status != http.StatusRequestTimeout {
			return nil, fmt.Errorf("%w: %w", zones.ErrRejected, err)
		}
		return nil, err
	}
	var response locations
	text, err := json.Marshal(resp.Body)
	if err = errors.Join(err, json.Unmarshal(text, &response)); err != nil {
		return nil, err
	}
	if response.Value == nil {
		return nil, errors.New("the response is no list of locations")
	}
	byRegion := map[string][]string{}
	for _, l := range *response.Value {
		var names []string
		for _, z := range l.Zones {
			names = append(names, z.LogicalZone)
		}
		sorted, valid := zones.Normalize(names)
		if !valid {
			return nil, fmt.Errorf("the zones of location %q are not valid", l.Name)
		}
		byRegion[l.Name] = sorted
	}
	return byRegion, nil
}
