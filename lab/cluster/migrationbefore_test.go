// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/migration"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// Plan and run find blockers before any write: machines without an allowing security group, an
// unreadable subnet, too few Standard public IPs. A security group on either the interface or the
// subnet suffices.
func TestWhatAMigrationFindsBefore(t *testing.T) {
	public := 0
	for _, b := range basics() {
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
				c := basicCluster{services: basics(), pools: func(*config.Config) {}}
				stage(t, Options{Role: &role, Machines: true, Indoors: true, MostStandardIPs: tt.most, Configure: func(c *config.Config) { toStandard(c) }}, func(s *Stage) {
					must(s.addBasicOf(kind, 2, basics()))
					if !tt.subnet {
						must(s.guards(nil))
					}
					if tt.own {
						must(s.haveGroups(kind, nodesOf(kind, 2)))
					}
					s.Pass(time.Minute)
					plan = s.planned()
					was, err := s.standing()
					must(err)
					s.Start()
					if tt.reason == "" {
						must(s.Settles(20 * time.Minute))
						must(s.migrated())
						must(subnetsRead(s.emu.Calls(), map[bool]int{true: 0, false: 1}[tt.own]))
						return
					}
					s.Pass(20 * time.Minute)
					must(s.is(was))
					if !s.log.says("reason=" + tt.reason) {
						must(errors.New("nobody says why"))
					}
				})
				if is := plan.migration(t, c); (is.State == migration.PlanBlocked) != (tt.reason != "") {
					t.Errorf("the plan is %s:\n%s", is.State, is.Text())
				}
			})
		}
	}
}

// subnetsRead returns an error unless subnets were read the given number of times.
func subnetsRead(calls []armemu.Call, want int) error {
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

// haveGroups gives the machines and scale set models the security group.
func (s *Stage) haveGroups(kind string, nodes []int) error {
	give := func(at string, path ...string) error {
		return s.patch(at, func(_, properties map[string]any) {
			for _, key := range path {
				properties = properties[key].(map[string]any)
			}
			if of, ok := properties["networkInterfaceConfigurations"].([]any); ok {
				properties = of[0].(map[string]any)["properties"].(map[string]any)
			}
			properties["networkSecurityGroup"] = idOf(securityGroup)
		})
	}
	set := s.setOf(nodes[0])
	if kind == "Flexible" {
		set = "flexible"
	}
	if set != "" {
		if err := give(compute+"virtualMachineScaleSets/"+set, "virtualMachineProfile", "networkProfile"); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		at, path := s.nicOf(n), []string(nil)
		if s.setOf(n) != "" {
			at, path = s.machineID(n), []string{"networkProfileConfiguration"}
		}
		if err := give(at, path...); err != nil {
			return err
		}
	}
	return nil
}
