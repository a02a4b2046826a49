// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// A missing permission blocks the plan, the status and the run; an unknown one is only reported.
// Once a machine has left, permissions are not checked.
func TestRightsAreAskedForBefore(t *testing.T) {
	for _, tt := range []struct {
		lacks    string
		unknown  error
		apart    bool
		stops    bool
		wantText string
	}{
		{"", nil, false, false, ""},
		{"Microsoft.Network/loadBalancers/delete", nil, false, true, "lacks Microsoft.Network/loadBalancers/delete on /subscriptions/s/resourceGroups/rg: assign"},
		{"Microsoft.Network/publicIPAddresses/write", nil, false, true, "lacks Microsoft.Network/publicIPAddresses/write"},
		{"Microsoft.Network/networkInterfaces/write", nil, false, true, "lacks Microsoft.Network/networkInterfaces/write"},
		{"Microsoft.Network/networkInterfaces/write", nil, true, false, ""},
		{"", errors.New("403 AuthorizationFailed"), false, false, "is not known: 403 AuthorizationFailed"},
	} {
		w := newWorld()
		w.lacks, w.unknown = []string{tt.lacks}, tt.unknown
		if tt.apart {
			w.kept = w.stock()
			w.kept.TrafficStopped = true
		}
		plan, err := BuildPlan(t.Context(), w.config())
		if err != nil || (plan.State == PlanBlocked) != tt.stops || !strings.Contains(plan.Text(), tt.wantText) {
			t.Errorf("%+v: %v, the plan is %s\n%s", tt, err, plan.State, plan.Text())
		}
		status, err := BuildStatus(t.Context(), w.config(), "weir")
		if err != nil || (status.State == StateBlocked) != tt.stops {
			t.Errorf("%+v: %v, the status is %s", tt, err, status.State)
		}
		w.asksRights = 0
		ended := w.run(t)
		if !ended || (w.ip.SKU == lb.Basic) != tt.stops || tt.stops && len(w.writes()) > 0 || !tt.apart && !strings.Contains(w.said.String(), tt.wantText) {
			t.Errorf("%+v: ended %t after %q\n%s", tt, ended, w.calls, w.said.String())
		}
		if want := map[bool]int{false: 1}[tt.apart]; w.asksRights != want {
			t.Errorf("%+v: rights were asked for %d times, want %d", tt, w.asksRights, want)
		}
	}
}

// Each kind of machine and address has its permissions at its scope.
func TestRightsByWhere(t *testing.T) {
	id := func(group, kind, name string) lb.ResourceID {
		return lb.ResourceID{SubscriptionID: "s", ResourceGroup: group, Type: kind, Name: name}
	}
	balancer := phase.LoadBalancer{ID: lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "lbs", Name: "b"}, Addresses: []phase.Address{
		{Frontend: "a", PublicIP: id("ips", lb.TypePublicIP, "p").String()}, {Frontend: "b", Subnet: "/subnets/nodes"},
	}}
	var rights []string
	for _, r := range phase.RequiredPermissions(phase.Journal{LoadBalancers: []phase.LoadBalancer{balancer}}, phase.Snapshot{
		Interfaces: []lb.NetworkInterface{{ID: id("vms", lb.TypeNetworkInterface, "n")}},
		ScaleSets:  []phase.ScaleSet{{ScaleSet: lb.ScaleSet{ID: id("uniform", lb.TypeScaleSet, "u"), Uniform: true}}, {ScaleSet: lb.ScaleSet{ID: id("flexible", lb.TypeScaleSet, "f")}}},
	}) {
		var last []string
		for _, a := range r.Actions {
			last = append(last, a[strings.Index(a, "/")+1:])
		}
		rights = append(rights, strings.TrimPrefix(r.Scope, "/subscriptions/s/resourceGroups/")+": "+strings.Join(last, " "))
	}
	if want := []string{
		"/subnets/nodes: virtualNetworks/subnets/join/action",
		"flexible: virtualMachineScaleSets/read virtualMachineScaleSets/write",
		"ips: publicIPAddresses/join/action publicIPAddresses/read publicIPAddresses/write",
		"lbs: loadBalancers/delete loadBalancers/read loadBalancers/write",
		"uniform: virtualMachineScaleSets/manualUpgrade/action virtualMachineScaleSets/read virtualMachineScaleSets/virtualMachines/read virtualMachineScaleSets/virtualMachines/write virtualMachineScaleSets/write",
		"vms: networkInterfaces/read networkInterfaces/write",
	}; !slices.Equal(rights, want) {
		t.Errorf("%q\nwant\n%q", rights, want)
	}
}
