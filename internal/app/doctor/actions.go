// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"weir.dev/weir/config"
	"weir.dev/weir/internal/probe"
	"weir.dev/weir/internal/words"
)

// listVersion is the API version that permissions are listed with, and mostPages how many pages of them are read.
const (
	listVersion = "2022-04-01"
	mostPages   = 20
)

// permission is one that the caller has: one role that is assigned to him.
type permission struct {
	Actions    []string `json:"actions"`
	NotActions []string `json:"notActions"`
}

// scopeOf says where an action of the shipped role is needed; empty where this azure.json needs it not. Of what is
// needed for the whole subscription the resource group says whether it is missing, for it inherits.
func (a *Azure) scopeOf(action string) string {
	group := func(name string) string {
		return "/subscriptions/" + a.Config.SubscriptionID + "/resourceGroups/" + name
	}
	network := a.Config.VirtualNetworkID()
	kind := strings.TrimPrefix(action, "Microsoft.Network/")
	switch {
	case strings.HasPrefix(kind, "loadBalancers/"), strings.HasPrefix(kind, "locations/"):
		return group(a.Config.BackendResourceGroup())
	case strings.HasPrefix(kind, "publicIPAddresses/"):
		return group(a.Config.ResourceGroup)
	case strings.HasPrefix(kind, "virtualNetworks/subnets/"):
		if network == "" || a.Config.SubnetName == "" {
			return ""
		}
		return network + "/subnets/" + a.Config.SubnetName
	case strings.HasPrefix(kind, "virtualNetworks/"):
		return network
	case strings.HasPrefix(kind, "networkSecurityGroups/"):
		if id := a.Config.SecurityGroup(); id.Name != "" {
			return id.String()
		}
	case kind == "networkInterfaces/read", action == "Microsoft.Compute/virtualMachines/read":
		if a.Config.Interfaces() || len(a.Config.Configurations) > 0 {
			return group(a.Config.ResourceGroup)
		}
	}
	return "" // publicIPPrefixes are those of Services that name one
}

// actions asks, for each scope, whether the identity has what the shipped role has.
func (a *Azure) actions() []named {
	var role struct{ Actions []string }
	content, err := config.Roles.ReadFile("azure-role.json")
	if err = errors.Join(err, json.Unmarshal(content, &role)); err != nil {
		return []named{{"actions", func(context.Context) []Check { return one(Unknown, err.Error(), "") }}}
	}
	needed := map[string][]string{}
	var scopes []string
	for _, action := range role.Actions {
		scope := a.scopeOf(action)
		if scope == "" {
			continue
		}
		if needed[scope] == nil {
			scopes = append(scopes, scope)
		}
		needed[scope] = append(needed[scope], action)
	}
	var all []named
	for _, scope := range scopes {
		all = append(all, named{"actions on " + path.Base(scope), func(ctx context.Context) []Check { return a.allowed(ctx, scope, needed[scope]) }})
	}
	return all
}

// allowed asks whether the identity may do all of some actions at a scope.
func (a *Azure) allowed(ctx context.Context, scope string, needed []string) []Check {
	has, err := a.permissions(ctx, scope)
	if ctx.Err() != nil {
		return notAnswered(ctx, err)
	}
	if err != nil {
		return one(Unknown, "not known: "+err.Error(), "Weir needs no right to list permissions; to have this check, give it Microsoft.Authorization/permissions/read there")
	}
	var missing []string
	for _, action := range needed {
		if !slices.ContainsFunc(has, func(p permission) bool { return anyOf(p.Actions, action) && !anyOf(p.NotActions, action) }) {
			missing = append(missing, action)
		}
	}
	if len(missing) > 0 {
		return one(Fail, "Weir's identity lacks "+words.List(missing, 20), "the role of config/azure-role.json on "+scope+"; Azure takes some minutes")
	}
	return one(OK, words.Count(len(needed), "action"), "")
}

// permissions are those that the caller has at a scope.
func (a *Azure) permissions(ctx context.Context, scope string) ([]permission, error) {
	raw, err := a.Client.Raw()
	if err != nil {
		return nil, err
	}
	at := scope + "/providers/Microsoft.Authorization/permissions"
	ask := probe.Request{Method: http.MethodGet, Path: at, Version: listVersion}
	var all []permission
	for range mostPages {
		answer, err := raw.Send(ctx, ask)
		if err != nil {
			return nil, err
		}
		if answer.Status != http.StatusOK {
			return nil, fmt.Errorf("%d %s: %s", answer.Status, strings.Join(answer.Codes, " "), answer.Message)
		}
		var page struct {
			Value    *[]permission `json:"value"`
			NextLink string        `json:"nextLink"`
		}
		text, err := json.Marshal(answer.Body)
		if err = errors.Join(err, json.Unmarshal(text, &page)); err != nil {
			return nil, err
		}
		if page.Value == nil {
			return nil, errors.New("the answer is no list of permissions")
		}
		if all = append(all, *page.Value...); page.NextLink == "" {
			return all, nil
		}
		if !a.continues(at, page.NextLink) {
			return nil, errors.New("its next page is at another address, which is not asked")
		}
		ask = probe.Request{Method: http.MethodGet, Path: at, Link: page.NextLink}
	}
	return nil, fmt.Errorf("there are more than %d pages", mostPages)
}

// continues reports whether a link leads on where the first page was: a token goes nowhere else.
func (a *Azure) continues(at, link string) bool {
	of, err := url.Parse(a.Endpoint)
	next, nextErr := url.Parse(link)
	return err == nil && nextErr == nil && next.Scheme == of.Scheme && next.Host == of.Host && next.User == nil && strings.EqualFold(next.Path, at)
}

// anyOf reports whether an action is meant by one of some, in which a star stands for anything.
func anyOf(patterns []string, action string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return means(strings.ToLower(p), strings.ToLower(action)) })
}

func means(pattern, action string) bool {
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
