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

// BenchmarkSpotWave: so many nodes of 100 pools of one load balancer leave within ten seconds,
// one after the other, each is dead 30 s after it was announced, and a write takes five
// seconds, which is 12 a minute. It reports the writes, how long it took until all nodes were
// Down in all pools, and for how long new flows met dead nodes: the share of the nodes taking
// new flows in a pool that were dead, summed over time and pools, in seconds. Without admin
// states two health probes have to fail, which takes ten seconds.
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
	waveAhead = 30 * time.Second // from the announcement of a node's end to its end
	probed    = 10 * time.Second // from a node's end until its probe has noticed
)

type spotWave struct {
	writes            int
	took, misdirected time.Duration
}

// playWave has nodes out of 200 leave. A zero T will do for the bubble of virtual time, as in
// the simulator.
func playWave(nodes int, how string) (wave spotWave) {
	azure := &whole{}
	cfg := Config{MaxRetries: 3, AdminState: how != "off"}
	if how == "together" {
		cfg.Whole, cfg.WholeWrites = azure, wholewrite.Always
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
			return b.Operations > 0 || !b.Oldest.IsZero()
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

// deadShare is the share of dead nodes among those of a pool that take new flows.
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
