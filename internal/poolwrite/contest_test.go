// SPDX-License-Identifier: Apache-2.0

package poolwrite

import (
	"net/netip"
	"slices"
	"testing"
)

// Somebody may have edited a pool by hand once: people hear of it when it comes again.
func TestWhatIsUndoneOnceIsNoContest(t *testing.T) {
	undone := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	for times, want := range map[int][]netip.Addr{timesUndone - 1: nil, timesUndone: undone, timesUndone + 1: undone} {
		if got := (contest{undone: undone, times: times}).Contested(); !slices.Equal(got, want) {
			t.Errorf("undone %d times: %v is contested, want %v", times, got, want)
		}
	}
}
