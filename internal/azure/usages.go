// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"weir.dev/weir/internal/skumigration/phase"
)

const (
	usagesVersion  = "2025-05-01"
	maxUsagesPages = 20
)

// regionRule guards the URL.
var regionRule = regexp.MustCompile(`^[a-z0-9]{1,64}$`)

type page struct {
	Value *[]struct {
		Name struct {
			Value string `json:"value"`
		} `json:"name"`
		Used  int `json:"currentValue"`
		Limit int `json:"limit"`
	} `json:"value"`
	NextLink string `json:"nextLink"`
}

// ListUsages returns the Microsoft.Network usages. It fails without read permission.
func ListUsages(ctx context.Context, client *Client, subscription, location string) ([]phase.Usage, error) {
	region := strings.ToLower(strings.ReplaceAll(location, " ", ""))
	if !regionRule.MatchString(region) {
		return nil, fmt.Errorf("%q is no region", location)
	}
	raw, err := client.NewRawClient()
	if err != nil {
		return nil, err
	}
	at := "/subscriptions/" + url.PathEscape(subscription) + "/providers/Microsoft.Network/locations/" + region + "/usages"
	request := RawRequest{Method: http.MethodGet, Path: at, Version: usagesVersion}
	var usages []phase.Usage
	for range maxUsagesPages {
		p, err := fetchPage(ctx, raw, request)
		if err != nil {
			return nil, err
		}
		for _, u := range *p.Value {
			usages = append(usages, phase.Usage{Subscription: subscription, Name: u.Name.Value, Used: u.Used, Limit: u.Limit})
		}
		if p.NextLink == "" {
			return usages, nil
		}
		if next, err := url.Parse(p.NextLink); err != nil || !strings.HasPrefix(p.NextLink, strings.TrimRight(raw.Endpoint, "/")+"/") || !strings.EqualFold(next.Path, at) {
			return nil, errors.New("its next page is at another address, which is not read") // never send the token elsewhere
		}
		request.Link = p.NextLink
	}
	return nil, fmt.Errorf("there are more than %d pages", maxUsagesPages)
}

func fetchPage(ctx context.Context, raw *RawClient, request RawRequest) (p page, err error) {
	resp, err := raw.Send(ctx, request)
	if err != nil {
		return p, err
	}
	if resp.Status != http.StatusOK {
		return p, fmt.Errorf("%d %s: %s", resp.Status, strings.Join(resp.Codes, " "), resp.Message)
	}
	text, err := json.Marshal(resp.Body)
	if err = errors.Join(err, json.Unmarshal(text, &p)); err != nil {
		return p, err
	}
	if p.Value == nil {
		return p, errors.New("the response is no list of usages")
	}
	return p, nil
}
