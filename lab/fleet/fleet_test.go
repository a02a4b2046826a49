// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/test/referencepage"
)

// Among 2, 10 and 50 clusters, the quota is used fairly without a storm of 429s, and the quiet cluster does not wait.
func TestReferenceOfFleets(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const seeds = 3
	var b strings.Builder
	b.WriteString("| clusters | load | accepted writes in 5 min, of 1,000 | 429s in 5 min: mean, most | fairness: mean, least | quiet cluster: median, p90 |\n|---|---|---|---|---|---|\n")
	for _, clusters := range []int{2, 10, 50} {
		for _, load := range []Load{Steady, Bursty} {
			all, least := Result{}, 1.0
			for seed := range uint64(seeds) {
				r := Fleet{Clusters: clusters, Load: load, Seed: 1 + seed, Lasts: 6 * time.Hour}.Run()
				all.Writes += r.Writes / seeds
				all.Throttled += r.Throttled / seeds
				all.Fairness += r.Fairness / seeds
				all.Greedy = max(all.Greedy, r.Greedy)
				all.MaxThrottled = max(all.MaxThrottled, r.MaxThrottled)
				all.QuietMedian = max(all.QuietMedian, r.QuietMedian)
				all.QuietP90 = max(all.QuietP90, r.QuietP90)
				least = min(least, r.Fairness)
			}
			fmt.Fprintf(&b, "| %d | %s | %.0f | %.1f, %d | %.2f, %.2f | %s, %s |\n", clusters, load, all.Writes, all.Throttled, all.MaxThrottled, all.Fairness, least, all.QuietMedian, all.QuietP90)
			if all.MaxThrottled > 2*clusters {
				t.Errorf("%d clusters, %s: %d 429s in five minutes", clusters, load, all.MaxThrottled)
			}
			if least < 0.9 {
				t.Errorf("%d clusters, %s: fairness %.3f, least %.3f", clusters, load, all.Fairness, least)
			}
			if all.QuietMedian > 5*time.Second {
				t.Errorf("%d clusters, %s: an isolated change takes %s", clusters, load, all.QuietMedian)
			}
			if all.Greedy > quota*share {
				t.Errorf("%d clusters, %s: the greedy one writes %.0f times in five minutes", clusters, load, all.Greedy)
			}
		}
	}
	referencepage.ExpectSection(t, "../../docs/reference/updater.md", "fleet", b.String())
}
