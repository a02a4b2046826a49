// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"

	"weir.dev/weir/config"
	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/humanize"
)

// requiredScope returns the scope at which an action is needed, or "". Subscription-wide actions are checked at the
// resource group, which inherits them.
func (a *Azure) requiredScope(action string) string {
	group := func(subscription, name string) string {
		return "/subscriptions/" + subscription + "/resourceGroups/" + name
	}
	network := a.Config.NetworkSubscriptionID()
	vnet := a.Config.VirtualNetworkID()
	kind := strings.TrimPrefix(action, "Microsoft.Network/")
	switch {
	case action == usagesAction: // the check of the region's limits reads them, which works only at the subscription
		return ""
	case strings.HasPrefix(kind, "loadBalancers/"), strings.HasPrefix(kind, "locations/"):
		return group(network, a.Config.BackendResourceGroup())
	case strings.HasPrefix(kind, "publicIPAddresses/"):
		return group(network, a.Config.ResourceGroup)
	case strings.HasPrefix(kind, "virtualNetworks/subnets/"):
		if vnet == "" || a.Config.SubnetName == "" {
			return ""
		}
		return vnet + "/subnets/" + a.Config.SubnetName
	case strings.HasPrefix(kind, "virtualNetworks/"):
		return vnet
	case strings.HasPrefix(kind, "networkSecurityGroups/"):
		if id := a.Config.SecurityGroup(); id.Name != "" {
			return id.String()
		}
	case kind == "networkInterfaces/read", action == "Microsoft.Compute/virtualMachines/read":
		if a.usesInterfaces() || len(a.Config.Configurations) > 0 {
			return group(a.Config.SubscriptionID, a.Config.ResourceGroup)
		}
	case strings.HasPrefix(kind, "networkInterfaces/"), strings.HasPrefix(action, "Microsoft.Compute/"):
		if a.usesInterfaces() {
			return group(a.Config.SubscriptionID, a.Config.ResourceGroup)
		}
	}
	return "" // publicIPPrefixes are needed only by Services that name one; the check of zones reads locations
}

// requiredActions returns the actions of the shipped roles that azure.json needs.
func (a *Azure) requiredActions() (actions []string, err error) {
	files := []string{"azure-role.json"}
	if a.usesInterfaces() {
		files = append(files, "azure-role-interfaces.json")
	}
	for _, file := range files {
		var role struct{ Actions []string }
		content, err := config.Roles.ReadFile(file)
		if err = errors.Join(err, json.Unmarshal(content, &role)); err != nil {
			return nil, err
		}
		actions = append(actions, role.Actions...)
	}
	return actions, nil
}

func (a *Azure) actionChecks() []namedCheck {
	if a.IsInvalid() {
		return nil
	}
	actions, err := a.requiredActions()
	if err != nil {
		return []namedCheck{{"actions", func(context.Context) []Check { return singleResult(Unknown, err.Error(), "") }}}
	}
	needed := map[string][]string{}
	var scopes []string
	for _, action := range actions {
		scope := a.requiredScope(action)
		if scope == "" || slices.Contains(needed[scope], action) {
			continue
		}
		if needed[scope] == nil {
			scopes = append(scopes, scope)
		}
		needed[scope] = append(needed[scope], action)
	}
	var checks []namedCheck
	for _, scope := range scopes {
		checks = append(checks, namedCheck{"actions on " + path.Base(scope), func(ctx context.Context) []Check { return a.checkActions(ctx, scope, needed[scope]) }})
	}
	return checks
}

func (a *Azure) checkActions(ctx context.Context, scope string, needed []string) []Check {
	missing, err := azure.ListMissingRights(ctx, a.Client, scope, needed)
	if ctx.Err() != nil {
		return noResponse(ctx, err)
	}
	if err != nil {
		return singleResult(Unknown, "not known: "+err.Error(), "Weir needs no right to list permissions; to have this check, give it Microsoft.Authorization/permissions/read there")
	}
	if len(missing) > 0 {
		return singleResult(Fail, "Weir's identity lacks "+humanize.FormatList(missing, 20), a.roleFiles()+" on "+scope+"; a new assignment can take some minutes in Azure")
	}
	return singleResult(OK, humanize.FormatCount(len(needed), "action"), "")
}

func (a *Azure) roleFiles() string {
	if a.usesInterfaces() {
		return "the roles of config/azure-role.json and config/azure-role-interfaces.json"
	}
	return "the role of config/azure-role.json"
}
