// SPDX-License-Identifier: Apache-2.0

package keeping

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
)

// Release returns each pool with a held member, whichever callers request members in between.
func TestHeldPoolsAreReleased(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stale := false
		k := &Policy{Stale: func(time.Time) bool { return stale }, NodeAt: func(netip.Addr) (membership.Node, bool) { return membership.Node{}, false }}
		written := netip.MustParseAddr("10.0.0.1")
		pools := []poolschedule.Ref{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "api"}}
		held := map[poolschedule.Ref]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			ref := rapid.SampledFrom(pools).Draw(t, "pool")
			switch rapid.SampledFrom([]string{"ask", "ask", "break", "mend"}).Draw(t, "step") {
			case "ask":
				kept, _ := k.RetainMembers(ref, membership.Set{}, func() membership.MemberRecord { return membership.MemberRecord{Written: []netip.Addr{written}} }, time.Now())
				if stale != (kept.RetainedStale == 1) {
					t.Fatalf("stale %t: %d members stay", stale, kept.RetainedStale)
				}
				held[ref] = held[ref] || stale
			case "break":
				stale = true
			case "mend":
				stale = false
			}
		}
		released := k.ReleaseHeld()
		for _, ref := range pools {
			if held[ref] != slices.Contains(released, ref) {
				t.Errorf("pool %s: a member stayed: %t, released: %t", ref.Name, held[ref], slices.Contains(released, ref))
			}
		}
		if n := k.CountHeld(); n != 0 {
			t.Errorf("%d members stay after the release", n)
		}
	})
}
