// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/config"
	"weir.dev/weir/internal/skumigration/phase"
	"weir.dev/weir/lab/armemu"
	"weir.dev/weir/test/shipped"
)

// migratesWith migrates a cluster with pools of addresses, after one undo, with a role.
func migratesWith(t *testing.T, kind string, newer bool, role *armemu.Role) (calls []armemu.Call) {
	t.Helper()
	runStage(t, Options{Role: role, Machines: true, NoOutboundPool: true, Configure: enableMigration}, func(s *Stage) {
		failOn(s.addBasicOf(kind, 3, basicServices()))
		if newer {
			failOn(s.setOwnGroups(nodesOfKind(kind, 3)))
		}
		s.Start()
		for n := 0; ; n++ { // until the first machine leaves
			if j, err := s.migrationJournal(); err != nil || j.TrafficStopped {
				break
			} else if n > 600 {
				failOn(errors.New("no machine leaves"))
			}
			s.Sleep(time.Second)
		}
		failOn(s.requestUndo())
		failOn(s.eventuallyUndone(20 * time.Minute))
		failOn(s.requestMigration(func(a *phase.UserRequests) { a.Run = &phase.UserRequest{At: time.Now().UTC()} }))
		s.KillProcess(0)
		failOn(s.WaitInSync(20 * time.Minute))
		failOn(s.checkMigrated())
		calls = s.emulator.Calls()
	})
	return calls
}

// setOwnGroups gives a virtual machine its own security group, which its writes must repeat, and a model
// something its instances lack.
func (s *Stage) setOwnGroups(nodes []int) error {
	if set := s.scaleSetName(nodes[0]); set != "" {
		return s.editResource(computeID+"virtualMachineScaleSets/"+set, func(_, properties map[string]any) {
			properties["virtualMachineProfile"].(map[string]any)["userData"] = "bmV3" // which its instances lack: they are written one by one
		})
	}
	return s.editResource(s.nicOf(nodes[0]), func(_, properties map[string]any) {
		properties["networkSecurityGroup"] = idOf(securityGroup)
	})
}

// Weir's role and the migration role cover all requests of a migration and its undo, for each kind
// of machine, and the migration role has nothing unused.
func TestTheRoleForMigrations(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	requested := map[string]bool{}
	for n, kind := range slices.Concat(machineKinds, []string{"Manual"}) {
		for _, call := range migratesWith(t, kind, n == 0 || n == len(machineKinds), shipped.MigrationRoles()) {
			if call.Status == 403 {
				t.Errorf("%s: %s %s: %s, which asks for %v", kind, call.Method, call.Path, call.ErrorCode, call.Actions)
			}
			for _, action := range call.Actions {
				requested[action] = true
			}
		}
	}
	for _, action := range shipped.AzureRole().Actions {
		if !slices.Contains(shipped.MigrationRole().Actions, action) {
			delete(requested, action)
		}
	}
	if got, want := slices.Sorted(maps.Keys(requested)), slices.Sorted(slices.Values(shipped.MigrationRole().Actions)); !slices.Equal(got, want) {
		t.Errorf("the role has\n%s\nand asked for is\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// With one permission missing nothing is written; with all of them the migration completes.
func TestAMigrationWithoutARight(t *testing.T) {
	for _, lacks := range []string{
		"Microsoft.Network/loadBalancers/delete", "Microsoft.Network/publicIPAddresses/write", "Microsoft.Network/virtualNetworks/subnets/join/action",
		"Microsoft.Compute/virtualMachineScaleSets/write", "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write",
	} {
		t.Run(lacks, func(t *testing.T) {
			role := *shipped.MigrationRoles()
			role.Actions = slices.DeleteFunc(slices.Clone(role.Actions), func(a string) bool { return a == lacks })
			runStage(t, Options{Role: &role, Machines: true, NoOutboundPool: true, Configure: func(c *config.Config) { enableMigration(c) }}, func(s *Stage) {
				failOn(s.addBasicOf("Manual", 2, basicServices()))
				before, err := s.preservedState()
				failOn(err)
				s.Start()
				s.Sleep(20 * time.Minute)
				failOn(s.diffPreserved(before))
				if !s.logs.hasLine("reason=RightMissing", lacks) {
					failOn(errors.New("nobody says that a right is missing"))
				}
			})
		})
	}
}
