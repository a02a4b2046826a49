// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
)

// BenchmarkSpotWave: so many nodes of 100 pools of one load balancer leave within ten seconds,
// one after the other, and a write takes five seconds, which is 12 a minute. It reports the
// writes, and how long it took until all nodes were Down in all pools. A zero T will do for
// the bubble of virtual time, as in the simulator.
func BenchmarkSpotWave(b *testing.B) {
	for _, nodes := range []int{20, 50, 200} {
		for _, together := range []bool{true, false} {
			b.Run(fmt.Sprintf("nodes=%d/together=%v", nodes, together), func(b *testing.B) {
				var wave spotWave
				for b.Loop() {
					wave = playWave(nodes, together)
				}
				b.ReportMetric(float64(wave.writes), "writes")
				b.ReportMetric(wave.took.Seconds(), "s-until-down")
			})
		}
	}
}

type spotWave struct {
	writes int
	took   time.Duration
}

// playWave has nodes out of 200 leave.
func playWave(nodes int, together bool) (wave spotWave) {
	azure := &whole{}
	cfg := Config{MaxRetries: 3, AdminState: true}
	if together {
		cfg.Whole = azure
	}
	inWorldOf(new(testing.T), cfg, func(w *world) {
		azure.world, w.writeTime = w, 5*time.Second
		var pools []lb.PoolID
		for i := range 100 {
			pools = append(pools, poolID("kubernetes", fmt.Sprintf("p%d", i)))
			w.pool(pools[i], members(0))
		}
		for n := range nodes {
			azure.drainAll(pools, members(n+1))
			time.Sleep(10 * time.Second / time.Duration(nodes))
		}
		for w.lanes.Backlog().Operations > 0 || !w.lanes.Backlog().Oldest.IsZero() {
			time.Sleep(time.Second)
		}
		wave.took = time.Since(w.start)
		for _, call := range w.calls {
			if strings.Contains(call, " PUT ") {
				wave.writes++
			}
		}
	})
	return wave
}

// members are 200 nodes, of which the first so many leave.
func members(leaving int) string {
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, " n%d=10.0.0.%d", i, i+1)
		if i < leaving {
			text.WriteString("/Down")
		}
	}
	return text.String()
}
