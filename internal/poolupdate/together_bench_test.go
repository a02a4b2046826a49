// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/wholewrite"
)

// BenchmarkTogether changes 100 Services at once while a node leaves ten pools, on one load
// balancer with writes that take 25 s, as measured with virtual machines. It reports the writes and
// the time until the last pool is in sync.
func BenchmarkTogether(b *testing.B) {
	for _, story := range []string{"changes", "drain"} {
		for _, ignores := range []bool{false, true} {
			for _, known := range []string{"it is true", "nothing", "the truth"} {
				b.Run(fmt.Sprintf("%s/ignored=%t/known=%s", story, ignores, strings.ReplaceAll(known, " ", "-")), func(b *testing.B) {
					var writes int
					var took time.Duration
					for b.Loop() {
						writes, took = playTogether(story, ignores, known)
					}
					b.ReportMetric(float64(writes), "writes")
					b.ReportMetric(took.Seconds(), "s-until-level")
				})
			}
		}
	}
}

func playTogether(story string, ignores bool, known string) (writes int, took time.Duration) {
	n, configure := 100, knowings[known]
	if story == "drain" {
		n = 10
	}
	if known == "the truth" {
		configure = func(c *Config) {
			c.BatchSetting, c.Behaviour = wholewrite.Auto, taking
			if ignores {
				c.Behaviour = ignoring
			}
		}
	}
	inWholeWorldOf(new(testing.T), n, configure, func(w *whole, pools []lb.PoolID) {
		w.ignores, w.writeTime = ignores, 25*time.Second
		if story == "drain" {
			for _, id := range pools {
				w.set(func() { w.pool(id, "n1=10.0.0.1 n2=10.0.0.2") })
			}
			w.drainAll(pools, "n1=10.0.0.1/Down n2=10.0.0.2")
		} else {
			for _, id := range pools {
				w.change(id, "n1=10.0.0.1")
			}
		}
		w.wait(2 * time.Hour)
		writes = strings.Count(strings.Join(w.calls, "\n"), " PUT ")
		for _, r := range w.reports {
			if r.Outcome == poolwrite.Written {
				took = max(took, r.At.Sub(w.start))
			}
		}
	})
	return writes, took
}

// If one write updates all pools of a load balancer they share a pace; otherwise each has its own.
func TestOneWriteForAllIsOnePace(t *testing.T) {
	for about, tt := range map[string]struct {
		knows   behaviour.Behavior
		setting wholewrite.Setting
		name    string
	}{
		"taken": {taking, wholewrite.Auto, ""}, "ignored": {ignoring, wholewrite.Auto, "web"},
		"not known": {behaviour.Behavior{}, wholewrite.Always, "web"}, "not wanted": {taking, wholewrite.Never, "web"},
	} {
		lanes := New(Config{Interval: interval, LoadBalancers: &whole{}, BatchSetting: tt.setting, Behaviour: tt.knows})
		if got := paceTarget(lanes.getWorker(web.LoadBalancer), web, time.Now()); got.Name != tt.name || got.LoadBalancer != web.LoadBalancer {
			t.Errorf("%s: %+v", about, got)
		}
	}
}
