// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/skumigration"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// Plan and run find blockers before any write: machines without an allowing security group, an
// unreadable subnet, too few Standard public IPs. A security group on either the interface or the
// subnet suffices.
func TestMigrationPreflight(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	public := 0
	for _, b := range basicServices() {
		if !b.internal {
			public++
		}
	}
	for _, kind := range machineKinds {
		for _, tt := range []struct {
			about       string
			own, subnet bool // has the security group
			lacks       string
			most        int
			reason      string
		}{
			{"the machines have it", true, false, "Microsoft.Network/virtualNetworks/subnets/read", public, ""},
			{"the subnet has it", false, true, "Microsoft.Network/locations/usages/read", 0, ""},
			{"nothing has it", false, false, "", 0, "NoSecurityGroup"},
			{"nobody may read the subnet", false, true, "Microsoft.Network/virtualNetworks/subnets/read", 0, "RightMissing"},
			{"one public IP too many", false, true, "", public - 1, "LimitReached"},
		} {
			t.Run(kind+", "+tt.about, func(t *testing.T) {
				role := *shipped.MigrationRoles()
				role.Actions = slices.DeleteFunc(slices.Clone(role.Actions), func(a string) bool { return a == tt.lacks })
				var plan planned
				c := basicCluster{services: basicServices(), pools: func(*config.Config) {}}
				runStage(t, Options{Role: &role, Machines: true, NoOutboundPool: true, MaxStandardIPs: tt.most, Configure: func(c *config.Config) { enableMigration(c) }}, func(s *Stage) {
					failOn(s.addBasicOf(kind, 2, basicServices()))
					if !tt.subnet {
						failOn(s.setSubnetGroup(nil))
					}
					if tt.own {
						failOn(s.setMachineGroups(kind, nodesOfKind(kind, 2)))
					}
					s.Sleep(time.Minute)
					plan = s.planned()
					before, err := s.preservedState()
					failOn(err)
					s.Start()
					if tt.reason == "" {
						failOn(s.WaitInSync(20 * time.Minute))
						failOn(s.checkMigrated())
						failOn(checkSubnetReads(s.emulator.Calls(), map[bool]int{true: 0, false: 1}[tt.own]))
						return
					}
					s.Sleep(20 * time.Minute)
					failOn(s.diffPreserved(before))
					if !s.logs.hasLine("reason=" + tt.reason) {
						failOn(errors.New("nobody says why"))
					}
				})
				if got := plan.migration(t, c); (got.State == skumigration.PlanBlocked) != (tt.reason != "") {
					t.Errorf("the plan is %s:\n%s", got.State, got.Text())
				}
			})
		}
	}
}

// checkSubnetReads returns an error unless subnets were read the given number of times.
func checkSubnetReads(calls []armemu.Call, want int) error {
	n := 0
	for _, c := range calls {
		if slices.Contains(c.Actions, "Microsoft.Network/virtualNetworks/subnets/read") {
			n++
		}
	}
	if n != want {
		return errors.New("subnets were read another number of times")
	}
	return nil
}

// setMachineGroups gives the machines and scale set models the security group.
func (s *Stage) setMachineGroups(kind string, nodes []int) error {
	give := func(at string, path ...string) error {
		return s.editResource(at, func(_, properties map[string]any) {
			for _, key := range path {
				properties = properties[key].(map[string]any)
			}
			if of, ok := properties["networkInterfaceConfigurations"].([]any); ok {
				properties = of[0].(map[string]any)["properties"].(map[string]any)
			}
			properties["networkSecurityGroup"] = idOf(securityGroup)
		})
	}
	set := s.scaleSetName(nodes[0])
	if kind == "Flexible" {
		set = "flexible"
	}
	if set != "" {
		if err := give(computeID+"virtualMachineScaleSets/"+set, "virtualMachineProfile", "networkProfile"); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		at, path := s.nicOf(n), []string(nil)
		if s.scaleSetName(n) != "" {
			at, path = s.machineID(n), []string{"networkProfileConfiguration"}
		}
		if err := give(at, path...); err != nil {
			return err
		}
	}
	return nil
}
