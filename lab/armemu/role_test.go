// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/referencepage"
)

func role(t *testing.T, actions, notActions string) *armemu.Role {
	t.Helper()
	r, err := armemu.ParseRole([]byte(`{"Name":"r","Actions":["` + strings.ReplaceAll(actions, " ", `","`) + `"],"NotActions":["` + notActions + `"]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestARoleAllows(t *testing.T) {
	for _, tt := range []struct {
		actions, not, action string
		want                 bool
	}{
		{"Microsoft.Network/a/read", "", "microsoft.network/A/read", true},
		{"Microsoft.Network/a/read", "", "Microsoft.Network/a/write", false},
		{"Microsoft.Network/a/read", "", "Microsoft.Network/a/read/b", false},
		{"Microsoft.Network/*", "", "Microsoft.Network/a/b/join/action", true},
		{"*/read", "", "Microsoft.Network/a/read", true},
		{"*/read", "", "Microsoft.Network/a/read/action", false},
		{"Microsoft.*/join/action", "", "Microsoft.Network/a/join/action", true},
		{"*", "Microsoft.Network/*/delete", "Microsoft.Network/a/delete", false},
		{"*", "Microsoft.Network/*/delete", "Microsoft.Network/a/write", true},
		{"a b", "", "b", true},
	} {
		if got := role(t, tt.actions, tt.not).AllowsAction(tt.action); got != tt.want {
			t.Errorf("%q without %q on %s: %v", tt.actions, tt.not, tt.action, got)
		}
	}
}

func TestARoleThatIsNone(t *testing.T) {
	for raw, want := range map[string]string{
		"{}": "no Actions", `{"Actions":[]}`: "no Actions", `{"Actoins":["*"]}`: "Actoins", `{"Actions":"*"}`: "string", "": "EOF",
	} {
		if _, err := armemu.ParseRole([]byte(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
}

func TestRequestedPermissions(t *testing.T) {
	const lbs, ip = "Microsoft.Network/loadBalancers", "Microsoft.Network/publicIPAddresses"
	const sets = "Microsoft.Compute/virtualMachineScaleSets"
	elsewhere := `{"id":"` + group + `/x/y"}`
	tests := []struct{ method, target, body, want string }{
		{http.MethodGet, lbID, "", lbs + "/read"},
		{http.MethodGet, group + "/loadBalancers", "", lbs + "/read"},
		{http.MethodGet, poolID, "", lbs + "/backendAddressPools/read"},
		{http.MethodGet, lbID + "/backendAddressPools", "", lbs + "/backendAddressPools/read"},
		{http.MethodDelete, lbID, "", lbs + "/delete"},
		{http.MethodGet, "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/x", "", "Microsoft.Network/locations/operations/read"},
		{http.MethodGet, "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operationResults/x", "", "Microsoft.Network/locations/operationResults/read"},
		{http.MethodGet, strings.Replace(group, "Network", "Compute", 1) + "/virtualMachines/vm", "", "Microsoft.Compute/virtualMachines/read"},
		{http.MethodPost, lbID, "{}", ""},
		{http.MethodPatch, lbID, `{"tags":{}}`, lbs + "/write"},
		{http.MethodGet, someGroup, "", "Microsoft.Resources/subscriptions/resourceGroups/read"},
		{http.MethodPut, someGroup, "{}", "Microsoft.Resources/subscriptions/resourceGroups/write"},
		{http.MethodDelete, someGroup, "", "Microsoft.Resources/subscriptions/resourceGroups/delete"},
		{http.MethodGet, someGroup + "/resources", "", "Microsoft.Resources/subscriptions/resourceGroups/resources/read"},
		{http.MethodGet, "/subscriptions/s/operationresults/x", "", "Microsoft.Resources/subscriptions/operationresults/read"},
		{http.MethodPut, poolID, poolBody("10.0.0.1"), lbs + "/backendAddressPools/write Microsoft.Network/virtualNetworks/joinLoadBalancer/action"},
		{http.MethodPut, lbID, lbBody(`{"name":"web"}`), lbs + "/write"},
		{http.MethodPut, lbID, `{"properties":{"frontendIPConfigurations":[{"properties":{"subnet":` + elsewhere + `}},{"properties":{"publicIPAddress":` + elsewhere + `}}]}}`,
			lbs + "/write " + ip + "/join/action Microsoft.Network/virtualNetworks/subnets/join/action"},
		{http.MethodPut, lbID, `{"properties":{"backendAddressPools":[{"properties":{"virtualNetwork":` + elsewhere + `}}]}}`,
			lbs + "/write Microsoft.Network/virtualNetworks/joinLoadBalancer/action"},
		{http.MethodPut, group + "/publicIPAddresses/ip", `{"properties":{"publicIPPrefix":` + elsewhere + `}}`, ip + "/write Microsoft.Network/publicIPPrefixes/join/action"},
		{http.MethodPut, group + "/networkSecurityGroups/nsg", `{"properties":{"securityRules":[{"properties":{"sourceApplicationSecurityGroups":[` + elsewhere + `]}}]}}`,
			"Microsoft.Network/networkSecurityGroups/write Microsoft.Network/applicationSecurityGroups/joinNetworkSecurityRule/action"},
		{http.MethodPut, lbID, "no JSON", lbs + "/write"},
		{http.MethodPut, nics + "n", nicInPools("", poolID), "Microsoft.Network/networkInterfaces/write Microsoft.Network/virtualNetworks/subnets/join/action " + lbs + "/backendAddressPools/join/action"},
		{http.MethodPatch, nics + "n", `{"tags":{}}`, "Microsoft.Network/networkInterfaces/write"},
		{http.MethodPut, vmID, `{"properties":{"networkProfile":{"networkInterfaces":[` + elsewhere + `]}}}`, "Microsoft.Compute/virtualMachines/write Microsoft.Network/networkInterfaces/join/action"},
		{http.MethodPatch, setID, setBody("Manual", 0, poolID), sets + "/write Microsoft.Network/virtualNetworks/subnets/join/action " + lbs + "/backendAddressPools/join/action"},
		{http.MethodPut, instanceID("0"), instanceInPools(poolID), sets + "/virtualMachines/write Microsoft.Network/virtualNetworks/subnets/join/action " + lbs + "/backendAddressPools/join/action"},
		{http.MethodGet, setID + "/virtualMachines", "", sets + "/virtualMachines/read"},
		{http.MethodPost, setID + "/manualupgrade", "", sets + "/manualUpgrade/action"},
		{http.MethodPost, instanceID("0") + "/start", "", sets + "/virtualMachines/start/action"},
		{http.MethodPost, vmID + "/deallocate", "", "Microsoft.Compute/virtualMachines/deallocate/action"},
	}
	emu := newCloud(t, armemu.Options{})
	for _, tt := range tests {
		sendRequest(t, emu, tt.method, tt.target, tt.body)
		calls := emu.Calls()
		if got := calls[len(calls)-1].Actions; !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s %s %s asks for %v", tt.method, tt.target, tt.body, got)
		}
	}
}

func TestTheRoleIsEnforced(t *testing.T) {
	const pool = "Microsoft.Network/loadBalancers/backendAddressPools"
	emu := newCloud(t, armemu.Options{Role: role(t, pool+"/read "+pool+"/write", "")})
	if a := sendRequest(t, emu, http.MethodGet, poolID, ""); a.status != 200 {
		t.Errorf("%d %s", a.status, a.raw)
	}
	a := sendRequest(t, emu, http.MethodGet, lbID, "")
	if want := "does not have authorization to perform action 'Microsoft.Network/loadBalancers/read' over scope '" + lbID + "' or the scope is invalid."; a.status != 403 ||
		a.errorCode() != "AuthorizationFailed" || !strings.Contains(a.raw, want) {
		t.Errorf("%d %s", a.status, a.raw)
	}
	a = sendRequest(t, emu, http.MethodPut, poolID, poolBody("10.0.0.1"))
	for _, want := range []string{
		"has permission to perform action '" + pool + "/write' on scope '" + poolID + "'",
		"not have permission to perform action 'Microsoft.Network/virtualNetworks/joinLoadBalancer/action' on the linked scope(s) '" + vnetID + "'",
	} {
		if a.status != 403 || a.errorCode() != "LinkedAuthorizationFailed" || !strings.Contains(a.raw, want) {
			t.Errorf("%d %s, want %s", a.status, a.raw, want)
		}
	}
	if got := poolIPs(t, emu, poolID); len(got) != 0 {
		t.Errorf("the pool holds %v", got)
	}
	if a := sendRequest(t, emu, http.MethodGet, group+"/nothing/x", ""); a.status != 404 {
		t.Errorf("a path that leads nowhere: %d", a.status)
	}
}

func TestReferenceShowsTheJoins(t *testing.T) {
	referencepage.ExpectSection(t, "rules.md", "joins", armemu.LinkedChecksMarkdown())
}
