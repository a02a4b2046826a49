// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
	"weir.dev/weir/test/shipped"
)

// usedActions are the actions used by all tests so far.
var usedActions = struct {
	sync.Mutex
	actions map[string]bool
}{actions: map[string]bool{}}

// azureRole is the shipped role, used by all tests. To rewrite it they run without one.
func azureRole() *armemu.Role {
	if rewriting() {
		return nil
	}
	return shipped.AzureRole()
}

func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// recordActions records the used actions and checks that only the optional list of permissions was
// rejected.
func (l *lab) recordActions() {
	l.t.Helper()
	refused := map[string]bool{}
	usedActions.Lock()
	defer usedActions.Unlock()
	for _, call := range l.emulator.Calls() {
		if slices.Equal(call.Actions, []string{"Microsoft.Authorization/permissions/read"}) {
			continue
		}
		for _, action := range call.Actions {
			usedActions.actions[action] = true
		}
		if strings.HasSuffix(call.ErrorCode, "AuthorizationFailed") && !refused[call.Path] {
			refused[call.Path] = true
			l.t.Errorf("%s %s was refused: the role in %s lacks one of %v", call.Method, call.Path, shipped.AzureRoleFile, call.Actions)
		}
	}
}

// A missing action is named in the status, even if it is needed for a reference in a write.
func TestAnActionThatTheRoleLacksIsNamed(t *testing.T) {
	runParallel(t)
	for lacks, wantText := range map[string]string{
		"Microsoft.Network/loadBalancers/backendAddressPools/read":  "403 AuthorizationFailed",
		"Microsoft.Network/virtualNetworks/joinLoadBalancer/action": "403 LinkedAuthorizationFailed",
	} {
		t.Run(wantText, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, armemu.Options{Role: &armemu.Role{Actions: []string{"*"}, NotActions: []string{lacks}}})
			l.pool("web")
			l.service("web", l.node("n1", "10.0.0.1"))
			l.controller("--leader-elect=false")
			l.expectStatusText("web", wantText)
			l.expectStatusText("web", lacks)
			_, named, _ := strings.Cut(wantText, " ")
			l.expectStatus(3, named+": ", lacks, "assign Weir's identity the role", "backendpool "+l.namespace+"/web", "   Service web")
		})
	}
}

// actionRows lists scope and purpose of each action, in the order of the page.
var actionRows = []struct{ action, on, why string }{
	{"Microsoft.Network/loadBalancers/read", "their resource group", "what is there already"},
	{"Microsoft.Network/loadBalancers/write", "their resource group", "Services; one write for several pools"},
	{"Microsoft.Network/loadBalancers/delete", "their resource group", "one that the last Service leaves"},
	{"Microsoft.Network/loadBalancers/backendAddressPools/read", "their resource group", "members"},
	{"Microsoft.Network/loadBalancers/backendAddressPools/write", "their resource group", "members, admin states"},
	{"Microsoft.Network/publicIPAddresses/read", "their resource groups", "Services"},
	{"Microsoft.Network/publicIPAddresses/write", "their resource groups", "Services"},
	{"Microsoft.Network/publicIPAddresses/delete", "their resource groups", "Services that go"},
	{"Microsoft.Network/publicIPAddresses/join/action", "their resource groups", "frontends"},
	{"Microsoft.Network/publicIPPrefixes/join/action", "the prefixes", "Services that name one"},
	{"Microsoft.Network/virtualNetworks/joinLoadBalancer/action", "the virtual network of the nodes", "pools of IP addresses"},
	{"Microsoft.Network/virtualNetworks/subnets/join/action", "the subnets of frontends", "internal Services"},
	{"Microsoft.Network/networkSecurityGroups/read", "the group of `securityGroupName`", "who may connect"},
	{"Microsoft.Network/networkSecurityGroups/write", "the group of `securityGroupName`", "who may connect"},
	{"Microsoft.Network/networkInterfaces/read", "the resource group of the machines", "admin states in pools of network interfaces"},
	{"Microsoft.Network/locations/operations/read", "the subscription", "to follow a write to its end"},
	{"Microsoft.Network/locations/usages/read", "the subscription", "load balancers and public IPs left in the region; without it they are unknown"},
	{"Microsoft.Compute/virtualMachines/read", "the machines of the nodes", "several load balancers by availability set; with pools of network interfaces, machines whose primary interface is in another resource group"},
	{"Microsoft.Resources/subscriptions/locations/read", "the subscription", "the [zones](zones.md) of the region; without it none are set, and nothing fails"},
}

// checkAzureRole compares the role with the used actions, and the page with the role.
func checkAzureRole(t *testing.T) {
	usedActions.Lock()
	defer usedActions.Unlock()
	var actions []string
	var page strings.Builder
	page.WriteString("| Action | On | For |\n|---|---|---|\n")
	explained := map[string]bool{}
	for _, row := range actionRows {
		explained[row.action] = true
		if usedActions.actions[row.action] {
			actions = append(actions, row.action)
			fmt.Fprintf(&page, "| `%s` | %s | %s |\n", row.action, row.on, row.why)
		}
	}
	for _, action := range slices.Sorted(maps.Keys(usedActions.actions)) {
		if !explained[action] {
			t.Errorf("%s is asked for: say on what and for what", action)
		}
	}
	raw, err := json.MarshalIndent(armemu.Role{
		Name: "Weir", IsCustom: true, Description: "Keeps load balancers, their public IP addresses and a security group in sync with a Kubernetes cluster.",
		Actions: actions, NotActions: []string{}, DataActions: []string{}, NotDataActions: []string{},
		AssignableScopes: []string{"/subscriptions/00000000-0000-0000-0000-000000000000"},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	referencepage.ExpectFile(t, shipped.AzureRoleFile, string(raw)+"\n")
	referencepage.ExpectSection(t, permissionsPage, "azure", page.String())
}
