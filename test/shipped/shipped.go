// SPDX-License-Identifier: Apache-2.0

// Package shipped gives tests access to the files of config/.
package shipped

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"weir.dev/weir/lab/armemu"
)

// AzureRoleFile is the Azure role definition, relative to the packages that use this one.
const AzureRoleFile = "../../config/azure-role.json"

// AzureRole is Weir's Azure role. It panics if the file is invalid.
var AzureRole = sync.OnceValue(func() *armemu.Role { return readRole(AzureRoleFile) })

// AzureRoles combines all shipped roles, including those for network interfaces, Private Link
// Services and subnet network policies.
var AzureRoles = sync.OnceValue(func() *armemu.Role {
	all := *AzureRole()
	for _, more := range []string{"interfaces", "private-links", "subnet-policies"} {
		all.Actions = slices.Concat(all.Actions, readRole("../../config/azure-role-"+more+".json").Actions)
	}
	return &all
})

// HealthRoles combines Weir's Azure role and the one for the health of members.
var HealthRoles = sync.OnceValue(func() *armemu.Role {
	all := *AzureRole()
	all.Actions = slices.Concat(all.Actions, readRole("../../config/azure-role-health.json").Actions)
	return &all
})

// MigrationRole is the additional role for the migration from Basic to Standard load balancers;
// MigrationRoles includes AzureRole.
var (
	MigrationRole  = sync.OnceValue(func() *armemu.Role { return readRole("../../config/azure-role-migration.json") })
	MigrationRoles = sync.OnceValue(func() *armemu.Role {
		all := *AzureRole()
		all.Actions = slices.Concat(all.Actions, MigrationRole().Actions)
		return &all
	})
)

func readRole(file string) *armemu.Role {
	raw, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	role, err := armemu.ParseRole(raw)
	if err != nil {
		panic(fmt.Errorf("%s: %w", file, err))
	}
	return role
}
