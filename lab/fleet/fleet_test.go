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
	var b strings.Builder
	b.WriteString("| clusters | load | accepted writes in 5 min, of 1,000 | 429s in 5 min: mean, most | fairness | quiet cluster: median, p90 |\n|---|---|---|---|---|---|\n")
	for _, clusters := range []int{2, 10, 50} {
		for _, load := range []Load{Steady, Bursty} {
			r := Fleet{Clusters: clusters, Load: load, Seed: 1, Lasts: 6 * time.Hour}.Run()
			fmt.Fprintf(&b, "| %d | %s | %.0f | %.1f, %d | %.2f | %s, %s |\n", clusters, load, r.Writes, r.Throttled, r.MaxThrottled, r.Fairness, r.QuietMedian, r.QuietP90)
			if r.MaxThrottled > 2*clusters {
				t.Errorf("%d clusters, %s: %d 429s in five minutes", clusters, load, r.MaxThrottled)
			}
			if r.Fairness < 0.9 {
				t.Errorf("%d clusters, %s: fairness %.3f", clusters, load, r.Fairness)
			}
			if r.QuietMedian > 5*time.Second {
				t.Errorf("%d clusters, %s: an isolated change takes %s", clusters, load, r.QuietMedian)
			}
			if r.Greedy > quota*share {
				t.Errorf("%d clusters, %s: the greedy one writes %.0f times in five minutes", clusters, load, r.Greedy)
			}
		}
	}
	referencepage.ExpectSection(t, "../../docs/reference/updater.md", "fleet", b.String())
}
