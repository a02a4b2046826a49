// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"net/netip"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/lb/behavior"
)

// Addresses added by a process or its successor are Weir's in Azure's log; otherwise all members
// would count as foreign.
func TestOwnersOfAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		setUp(t, s, behavior.Supersede)
		runStep(t, s, "scale web nodes=(n1)", "clock 10s", "restart", "scale web nodes=(n1, n2)", "clock 10s", "expect in-sync")
		s.mu.Lock()
		defer s.mu.Unlock()
		put, _ := s.weirAddresses(s.poolNamed("web"))
		for ip, weirs := range map[string]bool{"10.0.0.2": true, "10.0.0.3": true, "10.9.0.1": false} {
			if at := netip.MustParseAddr(ip); put[at] != weirs {
				t.Errorf("put by Weir: %s is %t, want %t", ip, put[at], weirs)
			}
		}
	})
}
