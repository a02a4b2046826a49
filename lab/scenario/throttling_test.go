// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Six pools of three load balancers change constantly for 20 hours, one hour of it throttled: the
// queue is bounded, no address is lost, and each pool emits at most one event a minute.
func TestTwentyHoursWithAStorm(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(20, 4))
		s := newStage(t)
		world := "cluster drift=10m\nnodes 12"
		var services []string
		for i := range 6 {
			if i%2 == 0 {
				world += fmt.Sprintf("\nlb lb%d", i/2+1)
			}
			world += fmt.Sprintf("\npool lb%d/p%d foreign=(10.9.0.%d)", i/2+1, i+1, i+1)
			services = append(services, fmt.Sprintf("\nservice s%d pools=(p%d) nodes=(n1)", i+1, i+1))
		}
		runStep(t, s, world+strings.Join(services, ""))
		events, storm, deepest := 0, 0, 0
		for s.stageTime() < 20*time.Hour {
			if at := s.stageTime(); at >= 9*time.Hour && at < 10*time.Hour && s.rules.isExhausted() {
				runStep(t, s, "throttle retry-after=60 for=58m")
			}
			var nodes []string
			for n := range 12 {
				if r.IntN(2) == 0 {
					nodes = append(nodes, fmt.Sprintf("n%d", n+1))
				}
			}
			runStep(t, s, fmt.Sprintf("scale s%d nodes=(%s)", 1+r.IntN(6), strings.Join(nodes, ", ")), fmt.Sprintf("clock %ds quiet", 1+r.IntN(60)))
			deepest = max(deepest, s.process.updater.Backlog().Operations)
			reported := len(s.takeEvents())
			events += reported
			if at := s.stageTime(); at >= 9*time.Hour && at < 10*time.Hour {
				storm += reported
			}
		}
		runStep(t, s, "heal", "clock 15m quiet", "expect calm")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if limit := 6 * 5; deepest > limit {
			t.Errorf("%d operations waited, at most %d may", deepest, limit)
		}
		if storm > 6*60 {
			t.Errorf("%d words in the hour of the storm are more than one a minute and pool", storm)
		}
		t.Logf("%d words in 20 hours, %d of them in the hour of the storm; at most %d operations waited", events, storm, deepest)
	})
}

func (s *Stage) stageTime() time.Duration { return time.Since(s.start) }
