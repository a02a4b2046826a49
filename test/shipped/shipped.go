// SPDX-License-Identifier: Apache-2.0

// Package shipped gives tests what config/ ships. It is for tests alone.
package shipped

import (
	"fmt"
	"os"
	"sync"

	"weir.dev/weir/lab/armemu"
)

// AzureRoleFile is the role definition for Azure, as seen from the packages that use this
// one.
const AzureRoleFile = "../../config/azure-role.json"

// AzureRole is what Weir may do in Azure. It panics if the file is none.
var AzureRole = sync.OnceValue(func() *armemu.Role {
	raw, err := os.ReadFile(AzureRoleFile)
	if err != nil {
		panic(err)
	}
	role, err := armemu.ParseRole(raw)
	if err != nil {
		panic(fmt.Errorf("%s: %w", AzureRoleFile, err))
	}
	return role
})
