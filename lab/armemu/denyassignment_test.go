// SPDX-License-Identifier: Apache-2.0

package armemu_test

import (
	"net/http"
	"strings"
	"testing"

	"weir.dev/weir/lab/armemu"
)

// In a locked resource group only reads are allowed, whatever the role. Outside of it a write that references
// a resource in it is denied, and all others are allowed.
func TestALockedGroupIsReadOnly(t *testing.T) {
	free := strings.Replace(group, "/rg/", "/free/", 1)
	emu := newCloud(t, armemu.Options{LockedGroups: []string{"RG"}, Role: role(t, "*", "")})
	before, _ := emu.Get(lbID)
	balancer := `{"location":"eastus","sku":{"name":"Standard"},"properties":{"backendAddressPools":[]}}`
	for _, tt := range []struct {
		method, target, body, code string
		wantText                   []string
	}{
		{http.MethodGet, lbID, "", "", nil},
		{http.MethodPut, lbID, balancer, "DenyAssignmentAuthorizationFailed", []string{
			"has permission to perform action 'Microsoft.Network/loadBalancers/write' on scope '" + lbID + "'; however, the access is denied because of the deny assignment",
			"at scope '" + strings.TrimSuffix(group, "/providers/Microsoft.Network") + "'",
		}},
		{http.MethodDelete, lbID, "", "DenyAssignmentAuthorizationFailed", []string{"loadBalancers/delete"}},
		{http.MethodPut, free + "/loadBalancers/weir", balancer, "", nil},
		{http.MethodPut, free + "/loadBalancers/weir/backendAddressPools/p", poolBody("10.0.0.1"), "LinkedAuthorizationFailed", []string{
			"'Microsoft.Network/virtualNetworks/joinLoadBalancer/action'", "is blocked by deny assignments on the '1' linked scope(s) '" + vnetID + "'",
		}},
	} {
		a := sendRequest(t, emu, tt.method, tt.target, tt.body)
		if got := a.errorCode(); got != tt.code || (tt.code != "") != (a.status == http.StatusForbidden) {
			t.Errorf("%s %s: %d %s, want %q", tt.method, tt.target, a.status, a.raw, tt.code)
		}
		for _, part := range tt.wantText {
			if !strings.Contains(a.raw, part) {
				t.Errorf("%s %s: no %q in %s", tt.method, tt.target, part, a.raw)
			}
		}
	}
	if after, _ := emu.Get(lbID); string(after) != string(before) {
		t.Errorf("the load balancer is\n%s\nwas\n%s", after, before)
	}
}
