// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// permissionsVersion is the api-version of the list of permissions; maxRightsPages limits its pages.
const (
	permissionsVersion = "2022-04-01"
	maxRightsPages     = 20
)

// permission is one role assigned to the caller.
type permission struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

// ListMissingRights returns the actions that the caller lacks at a scope.
func ListMissingRights(ctx context.Context, client *Client, scope string, actions []string) ([]string, error) {
	permissions, err := listPermissions(ctx, client, scope)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, action := range actions {
		if !slices.ContainsFunc(permissions, func(p permission) bool { return matchesAny(p.Actions, action) && !matchesAny(p.NotActions, action) }) {
			missing = append(missing, action)
		}
	}
	return missing, nil
}

func listPermissions(ctx context.Context, client *Client, scope string) ([]permission, error) {
	raw, err := client.NewRawClient()
	if err != nil {
		return nil, err
	}
	at := scope + "/providers/Microsoft.Authorization/permissions"
	request := RawRequest{Method: http.MethodGet, Path: at, Version: permissionsVersion}
	var permissions []permission
	for range maxRightsPages {
		resp, err := raw.Send(ctx, request)
		if err != nil {
			return nil, err
		}
		if resp.Status != http.StatusOK {
			return nil, fmt.Errorf("%d %s: %s", resp.Status, strings.Join(resp.Codes, " "), resp.Message)
		}
		var page struct {
			Value    *[]permission `json:"value"`
			NextLink string        `json:"nextLink"`
		}
		text, err := json.Marshal(resp.Body)
		if err = errors.Join(err, json.Unmarshal(text, &page)); err != nil {
			return nil, err
		}
		if page.Value == nil {
			return nil, errors.New("the response is no list of permissions")
		}
		if permissions = append(permissions, *page.Value...); page.NextLink == "" {
			return permissions, nil
		}
		if !isSamePath(raw.Endpoint, at, page.NextLink) {
			return nil, errors.New("its next page is at another address, which is not read")
		}
		request = RawRequest{Method: http.MethodGet, Path: at, Link: page.NextLink}
	}
	return nil, fmt.Errorf("there are more than %d pages", maxRightsPages)
}

// isSamePath reports whether a link has the first page's URL; the token must not be sent elsewhere.
func isSamePath(endpoint, at, link string) bool {
	of, err := url.Parse(endpoint)
	next, nextErr := url.Parse(link)
	return err == nil && nextErr == nil && next.Scheme == of.Scheme && next.Host == of.Host && next.User == nil && strings.EqualFold(next.Path, at)
}

// matchesAny reports whether an action matches one of the patterns; * matches anything.
func matchesAny(patterns []string, action string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matchesPattern(strings.ToLower(p), strings.ToLower(action)) })
}

func matchesPattern(pattern, action string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == action
	}
	rest, ok := strings.CutPrefix(action, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
