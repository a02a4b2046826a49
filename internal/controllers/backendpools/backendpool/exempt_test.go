// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"testing"

	"weir.dev/weir/api/v1alpha1"
)

// Removing a member without a node bypasses the namespace's share. Other changes do not.
func TestMembersWithoutANodeAreExempt(t *testing.T) {
	c, _, p := newRecordedPool(t)
	c.world.nodes["n1"] = nodeIP("n1")
	e := c.statuses.GetEntry(RefOf(p))
	for address, want := range map[string]bool{"203.0.113.9": true, "10.0.0.1": false, "not an address": false} {
		e.status = v1alpha1.BackendPoolStatus{WrittenAddresses: []string{address}}
		if got := isExempt(c.Controller, p, e); got != want {
			t.Errorf("%s: exempt %t", address, got)
		}
	}
}
