// SPDX-License-Identifier: Apache-2.0

package azure_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/azure"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/lab/armemu"
)

func shippedRole(t *testing.T, name string) *armemu.Role {
	t.Helper()
	raw, err := os.ReadFile("../../config/azure-role-" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	role, err := armemu.ParseRole(raw)
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// The role for Private Link Services is sufficient and minimal; opening a subnet needs its own
// role.
func TestTheRolesAreWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	links, subnets := shippedRole(t, "private-links"), shippedRole(t, "subnet-policies")
	synctest.Test(t, func(t *testing.T) {
		both := *links
		both.Actions = slices.Concat(links.Actions, subnets.Actions)
		emu, arm := newEmulatorPrivateLinks(t, &both)
		client := azure.NewPrivateLinkClient(arm)
		play := func(sharers []desired.FrontendService) {
			t.Helper()
			for range 10 {
				switch s := runStep(t, client, sharers, set); {
				case s == "in sync":
					return
				case strings.Contains(s, ":"):
					t.Fatal(s)
				}
			}
		}
		play(newSharers())
		if _, err := emu.Connect(mine, "/subscriptions/s1/resourceGroups/c/providers/Microsoft.Network/privateEndpoints/pe"); err != nil {
			t.Fatal(err)
		}
		p, err := client.Get(t.Context(), idOfMine)
		if err != nil || len(p.Connections) != 1 {
			t.Fatalf("%+v, %v", p, err)
		}
		p.Connections[0].Etag = "" // lists may omit it, then it is read
		if err := client.DeleteConnection(t.Context(), idOfMine, p.Connections[0]); err != nil {
			t.Fatal(err)
		}
		play(nil)
		requested := map[string]bool{}
		for _, call := range emu.Calls() {
			if call.Status >= 400 {
				t.Errorf("%s %s: %d %s, which asks for %v", call.Method, call.Path, call.Status, call.ErrorCode, call.Actions)
			}
			for _, action := range call.Actions {
				requested[action] = true
				if !slices.Contains(both.Actions, action) {
					t.Errorf("no role has %s", action)
				}
			}
		}
		for _, action := range links.Actions {
			if !requested[action] {
				t.Errorf("%s is not requested", action)
			}
		}
		if write := "Microsoft.Network/virtualNetworks/subnets/write"; !requested[write] || slices.Contains(links.Actions, write) {
			t.Error("subnets are not written with the one role alone")
		}
	})
}
