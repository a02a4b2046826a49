// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"testing"
	"time"

	"weir.dev/weir/internal/leader"
)

// A process with an ended term does not report the leader as absent.
func TestLeaderState(t *testing.T) {
	now := time.Duration(0)
	fence := leader.NewFence(10*time.Second, func() time.Duration { return now })
	expect := func(about string, wantLeads bool, want time.Duration) {
		t.Helper()
		if leads, unrenewed := leaderState(fence); leads != wantLeads || unrenewed != want {
			t.Errorf("%s: %t, %s", about, leads, unrenewed)
		}
	}
	now = 70 * time.Second
	expect("a standby without a renewal", false, 70*time.Second)
	fence.RecordRenew(leader.Epoch{}, now)
	expect("the leader", true, 0)
	now += time.Hour
	fence.EndTerm(errors.New("not renewed"))
	expect("its term has ended", false, 0)
}
