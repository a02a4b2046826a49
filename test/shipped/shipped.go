// SPDX-License-Identifier: Apache-2.0

// Package shipped gives tests what config/ ships. It is for tests alone.
package shipped

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"weir.dev/weir/lab/armemu"
)

// AzureRoleFile is the role definition for Azure, as seen from the packages that use this
// one.
const AzureRoleFile = "../../config/azure-role.json"

// AzureRole is what Weir may do in Azure. It panics if the file is none.
var AzureRole = sync.OnceValue(func() *armemu.Role { return role(AzureRoleFile) })

// AzureRoles is what it may do there with all roles that are shipped: also those for pools of network
// interfaces, for Private Link Services, and for the network policies of subnets.
var AzureRoles = sync.OnceValue(func() *armemu.Role {
	all := *AzureRole()
	for _, more := range []string{"interfaces", "private-links", "subnet-policies"} {
		all.Actions = slices.Concat(all.Actions, role("../../config/azure-role-"+more+".json").Actions)
	}
	return &all
})

// MigrationRole is what it may do besides while Basic load balancers become Standard ones, and MigrationRoles is both.
var (
	MigrationRole  = sync.OnceValue(func() *armemu.Role { return role("../../config/azure-role-migration.json") })
	MigrationRoles = sync.OnceValue(func() *armemu.Role {
		all := *AzureRole()
		all.Actions = slices.Concat(all.Actions, MigrationRole().Actions)
		return &all
	})
)

func role(file string) *armemu.Role {
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
