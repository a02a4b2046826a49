// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/wholewrite"
)

// BenchmarkSpotWave lets nodes of 100 pools of one load balancer leave one after the other within
// ten seconds. Each dies 30 s after the announcement, and a write takes five seconds. It reports
// the writes, the time until all nodes are Down in all pools, and the exposure of new flows to dead
// nodes: the share of dead nodes among those taking flows, summed over pools and seconds. Without
// admin states two health probes have to fail, which takes ten seconds.
func BenchmarkSpotWave(b *testing.B) {
	for _, nodes := range []int{20, 50, 200} {
		for _, how := range []string{"together", "one by one", "off"} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, how), func(b *testing.B) {
				var wave spotWave
				for b.Loop() {
					wave = playWave(nodes, how)
				}
				b.ReportMetric(float64(wave.writes), "writes")
				b.ReportMetric(wave.took.Seconds(), "s-until-down")
				b.ReportMetric(wave.misdirected.Seconds(), "s-misdirected")
			})
		}
	}
}

const (
	waveLasts = 10 * time.Second
	waveAhead = 30 * time.Second // from announcement to death
	probed    = 10 * time.Second // from death until the probe notices
)

type spotWave struct {
	writes            int
	took, misdirected time.Duration
}

// playWave lets nodes out of 200 leave. It also works with a zero T in the simulator's bubble.
func playWave(nodes int, how string) (wave spotWave) {
	azure := &whole{}
	cfg := Config{MaxRetries: 3, AdminState: how != "off"}
	if how == "together" {
		cfg.LoadBalancers, cfg.BatchSetting = azure, wholewrite.Always
	}
	inWorldOf(new(testing.T), cfg, func(w *world) {
		azure.world, w.writeTime = w, 5*time.Second
		var pools []lb.PoolID
		for i := range 100 {
			pools = append(pools, poolID("kubernetes", fmt.Sprintf("p%d", i)))
			w.pool(pools[i], members(0))
		}
		apart := waveLasts / time.Duration(nodes)
		for n := range nodes {
			if how != "off" {
				azure.drainAll(pools, members(n+1))
			}
			time.Sleep(apart)
		}
		const tick = 100 * time.Millisecond
		busy := func() bool {
			b := w.lanes.Backlog()
			return b.Operations > 0 || !b.OldestQueuedAt.IsZero()
		}
		for busy() || time.Since(w.start) < waveLasts+waveAhead+probed {
			if busy() {
				wave.took = time.Since(w.start)
			}
			for _, p := range w.pools {
				wave.misdirected += time.Duration(deadShare(p, nodes, apart, time.Since(w.start)) * float64(tick))
			}
			time.Sleep(tick)
		}
		for _, call := range w.calls {
			if strings.Contains(call, " PUT ") {
				wave.writes++
			}
		}
	})
	return wave
}

// deadShare returns the share of dead nodes among a pool's nodes that take new flows.
func deadShare(p *lb.Pool, leaving int, apart, now time.Duration) float64 {
	dead, takers := 0, 0
	for i, a := range p.Addresses {
		since := now - waveAhead - time.Duration(i)*apart
		switch gone := i < leaving && since >= 0; {
		case a.AdminState == lb.Down || gone && since >= probed:
		case gone:
			dead++
			takers++
		default:
			takers++
		}
	}
	if takers == 0 {
		return 0
	}
	return float64(dead) / float64(takers)
}

// members returns 200 nodes, the first of which leave.
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
