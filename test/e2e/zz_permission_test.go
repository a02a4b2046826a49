// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"flag"
	"sync/atomic"
	"testing"

	"weir.dev/weir/test/referencepage"
)

const permissionsPage = "../../docs/reference/permissions.md"

// unfinished: a test failed, so the used permissions are incomplete.
var unfinished atomic.Bool

// The roles allow exactly what this package's tests use. It waits for all other tests. After a
// partial run only missing permissions are known.
func TestTheRolesAllowWhatIsUsed(t *testing.T) {
	t.Parallel()
	parallelTests.Wait()
	whole := !unfinished.Load()
	for name, all := range map[string]string{"test.run": "", "test.skip": "", "test.shuffle": "off"} {
		whole = whole && flag.Lookup(name).Value.String() == all
	}
	checkRoles(t, whole)
	if !whole {
		t.Skip("not all tests were run, and passed: what the roles allow beyond need is not known")
	}
	checkAzureRole(t)
	referencepage.ExpectSection(t, permissionsPage, "kubernetes", rolesPage(t))
}
