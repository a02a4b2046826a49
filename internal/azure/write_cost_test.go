// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"runtime"
	"testing"
)

// A write of a load balancer, with the read before and the result after it, allocates in proportion to its
// text, and few objects for each pool, rule and probe.
func TestAWriteOfALoadBalancerCostsItsText(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector allocates, too")
	}
	const small, large = 50, 200
	costOf := func(parts int) (bytes, objects float64) {
		w := newWriteCost(t, parts)
		if err := w.write(t.Context()); err != nil { // fills caches
			t.Fatal(err)
		}
		const times = 5
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range times {
			if err := w.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / times, float64(after.Mallocs-before.Mallocs) / times
	}
	smallBytes, smallObjects := costOf(small)
	largeBytes, largeObjects := costOf(large)
	text := float64(len(fullBalancer(poolID("s1", "kubernetes", "").LoadBalancer, large)))
	t.Logf("%.0f bytes for each of %.0f of text, %.0f objects for a pool of ten addresses with a rule and a probe", largeBytes/text, text, largeObjects/large)
	if largeBytes > 22*text || largeObjects > 250*large {
		t.Errorf("%.0f bytes and %.0f objects for %.0f bytes of text", largeBytes, largeObjects, text)
	}
	if bytes, objects := largeBytes/smallBytes, largeObjects/smallObjects; bytes > 1.25*large/small || objects > 1.25*large/small {
		t.Errorf("%d times as many parts: %.1f times the bytes, %.1f times the objects", large/small, bytes, objects)
	}
}
