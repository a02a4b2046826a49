// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
)

// Release returns each pool with a held member, whichever callers request members in between.
func TestHeldPoolsAreReleased(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stale := false
		k := &RetentionPolicy{Stale: func(time.Time) bool { return stale }, NodeAt: func(netip.Addr) (membership.Node, bool) { return membership.Node{}, false }}
		written := netip.MustParseAddr("10.0.0.1")
		pools := []schedule.Ref{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "api"}}
		held := map[schedule.Ref]bool{}
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

// Nodes that start are remembered per pool, and nothing is kept of pools without them, or of deleted BackendPools.
func TestStartsOfPools(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	web, api := schedule.Ref{Namespace: "shop", Name: "web"}, schedule.Ref{Namespace: "shop", Name: "api"}
	k := &RetentionPolicy{}
	starts := membership.Set{EarlyJoin: membership.JoinWhileStarting, Starting: []lb.Address{{Name: "n1", IP: netip.MustParseAddr("10.0.0.1")}}}
	members := func(ref schedule.Ref, set membership.Set, after time.Duration) int {
		kept, _ := k.RetainMembers(ref, set, func() membership.MemberRecord { return membership.MemberRecord{} }, noon.Add(after))
		return len(kept.Addresses)
	}
	if members(web, starts, 0) != 1 || members(api, starts, 9*time.Minute) != 1 {
		t.Error("a node that starts is no member")
	}
	if members(web, starts, 10*time.Minute) != 0 || members(api, starts, 10*time.Minute) != 1 {
		t.Error("the time of one pool is that of another, or has no end")
	}
	if at := starts.Starting[0].IP; !k.HasStartTimedOut(web, at, noon.Add(10*time.Minute)) || k.HasStartTimedOut(web, at, noon.Add(10*time.Minute-1)) || k.HasStartTimedOut(api, at, noon.Add(10*time.Minute)) {
		t.Error("the timeout of a node is not that of its pool")
	}
	kept, recheckAt := k.RetainMembers(api, starts, nil, noon.Add(11*time.Minute))
	if len(kept.Addresses) != 1 || !recheckAt.Equal(noon.Add(19*time.Minute)) {
		t.Errorf("requeued at %s", recheckAt)
	}
	k.Forget(web)
	ready := membership.Set{Addresses: starts.Starting}
	if members(api, ready, 12*time.Minute); len(k.starts) != 0 {
		t.Errorf("kept: %v", k.starts)
	}
}
