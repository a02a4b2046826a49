// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"flag"
	"sync/atomic"
	"testing"

	"weir.dev/weir/test/referencepage"
)

const permissionsPage = "../../docs/reference/permissions.md"

// unfinished says that a test failed: what it would have asked for is not known.
var unfinished atomic.Bool

// What the roles allow is what the tests in this package make the program do, no more and no
// less. It waits for all others. After a part of the tests it is known only what is missing.
func TestTheRolesAllowWhatIsUsed(t *testing.T) {
	t.Parallel()
	others.Wait()
	whole := !unfinished.Load()
	for name, all := range map[string]string{"test.run": "", "test.skip": "", "test.shuffle": "off"} {
		whole = whole && flag.Lookup(name).Value.String() == all
	}
	holdTheRoles(t, whole)
	if !whole {
		t.Skip("not all tests were run, and passed: what the roles allow beyond need is not known")
	}
	holdsTheAzureRole(t)
	referencepage.Shows(t, permissionsPage, "kubernetes", rolesPage(t))
}
