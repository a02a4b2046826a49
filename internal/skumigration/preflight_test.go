// SPDX-License-Identifier: Apache-2.0

package skumigration

import (
	"errors"
	"strings"
	"testing"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/skumigration/phase"
)

// The plan and the run agree on security groups and limits. A forbidden subnet blocks; unreadable
// limits do not.
func TestReadsBeforeTheStart(t *testing.T) {
	bare := func(w *world) { w.nics[0].SecurityGroup = "" }
	denied := func(about string) func(string) error {
		return func(call string) error {
			if strings.HasPrefix(call, about) {
				return refusal("AuthorizationFailed")
			}
			return nil
		}
	}
	gone := func(about string) func(string) error {
		return func(call string) error {
			if strings.HasPrefix(call, about) {
				return &armerror.Fault{Class: armerror.Stale, Code: "NotFound", Err: errors.New("404")}
			}
			return nil
		}
	}
	for _, tt := range []struct {
		about    string
		changed  func(*world)
		subnets  int // read by a plan
		stops    bool
		wantText string
	}{
		{"the machine has a security group", func(*world) {}, 0, false, ""},
		{"its subnet has one", func(w *world) { bare(w); w.subnet.SecurityGroup = "/nodes" }, 1, false, ""},
		{"neither has one", bare, 1, true, "(NoSecurityGroup): there is no network security group on network interface n1, nor"},
		{"two without one, in one subnet", func(w *world) {
			bare(w)
			second := w.nics[0]
			second.ID.Name = "n2"
			w.nics = append(w.nics, second)
		}, 1, true, "network interface n1, network interface n2, nor"},
		{"nobody may read it", func(w *world) { bare(w); w.fails = denied("list subnet nodes of v") }, 1, true, "lacks Microsoft.Network/virtualNetworks/subnets/read on " + subnetID},
		{"no subnet is shown", func(w *world) { bare(w); w.nics[0].IPConfigurations[0].Subnet = "" }, 0, false, "note (NoSecurityGroup): Azure does not show the subnet of network interface n1"},
		{"there is no such subnet", func(w *world) { bare(w); w.fails = gone("list subnet nodes of v") }, 1, false, "note (NoSecurityGroup): Azure does not show the subnet of network interface n1"},
		{"no room", func(w *world) {
			w.usages = []phase.Usage{{Subscription: "s", Name: "StandardSkuPublicIpAddresses", Used: 3, Limit: 3}}
		}, 0, true, "(LimitReached): the subscription has 3 of 3 StandardSkuPublicIpAddresses"},
		{"nobody may read the limits", func(w *world) { w.fails = denied("list usages of s in eastus") }, 0, false, "note (LimitsUnknown): how many load balancers and public IPs subscription s may still have"},
	} {
		w := newWorld()
		tt.changed(w)
		plan, err := BuildPlan(t.Context(), w.config())
		if err != nil || (plan.State == PlanBlocked) != tt.stops || !strings.Contains(plan.Text(), tt.wantText) || w.asksSubnets != tt.subnets {
			t.Errorf("%s: %v, the plan is %s, %d subnets are read\n%s", tt.about, err, plan.State, w.asksSubnets, plan.Text())
		}
		status, err := BuildStatus(t.Context(), w.config(), "weir")
		if err != nil || (status.State == StateBlocked) != tt.stops {
			t.Errorf("%s: %v, the status is %s", tt.about, err, status.State)
		}
		w.asksSubnets = 0
		if ended := w.run(t); !ended || (w.ip.SKU == lb.Basic) != tt.stops || tt.stops && len(w.writes()) > 0 || w.asksSubnets != tt.subnets {
			t.Errorf("%s: ended %t after %q, %d subnets were read\n%s", tt.about, ended, w.calls, w.asksSubnets, w.said.String())
		}
	}
}

// A failed subnet read is retried, because it decides whether a machine has a security group.
func TestASubnetThatIsReadAgain(t *testing.T) {
	w := newWorld()
	w.nics[0].SecurityGroup, w.subnet.SecurityGroup = "", "/nodes"
	w.fails = func(call string) error {
		if strings.HasPrefix(call, "list subnet") && w.asksSubnets < 3 {
			return &armerror.Fault{Class: armerror.Retriable, Code: "InternalServerError", Err: refusal("InternalServerError")}
		}
		return nil
	}
	if ended := w.run(t); !ended || w.ip.SKU != lb.Standard || w.asksSubnets != 3 {
		t.Errorf("ended %t, %s, %d reads\n%s", ended, w.ip.SKU, w.asksSubnets, w.said.String())
	}
}
