// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// workload is a world and its events, between which the process dies.
type workload struct {
	name, world string
	story       []string
}

// twoPools is the world of most workloads: two pools of one load balancer with foreign addresses.
const twoPools = `cluster drift=10m
nodes 4
lb kubernetes
pool kubernetes/web foreign=(10.9.0.1)
pool kubernetes/api foreign=(10.9.0.2)
service web pools=(web) nodes=(n1, n2)
service api pools=(api) nodes=(n3)`

func allWorkloads() []workload {
	return []workload{
		{"scale", twoPools, []string{
			"clock 1s", "scale web api nodes=(n2, n3)", "clock 3s", "scale web nodes=(n3)", "clock 3s",
			"scale api nodes=(n1, n2, n3)", "clock 6s", "scale web nodes=(n1)", "clock 12s",
		}},
		{"drain", twoPools, []string{"clock 6s", "drain n3 to=n4", "clock 1s", "drain n1 to=n4 serving", "clock 8s"}},
		{"node lost", twoPools, []string{"clock 6s", "node-lost n2", "clock 2s", "node-lost n3", "clock 6s", "node-lost n2 back", "clock 6s"}},
		{"service gone", twoPools, []string{"clock 6s", "delete-service web", "clock 6s", "cluster\nservice web pools=(web) nodes=(n4)", "clock 6s"}},
		{"pool given up", twoPools, []string{"clock 6s", "fail on=PUT pool=web status=400 times=2", "scale web nodes=(n4)", "clock 20m"}},
		{"drift", twoPools, []string{"clock 6s", "conflict pool=web remove=n1", "conflict pool=api add=10.9.0.3", "clock 11m"}},
		{"throttled", twoPools, []string{"clock 6s", "throttle retry-after=30 times=3", "scale web api nodes=(n4)", "clock 3m"}},
		{"lost answers", twoPools, []string{"lose-answer times=2", "clock 40s", "lose-answer late=20s", "scale web nodes=(n2, n3)", "clock 80s"}},
		{"overtaken", twoPools, []string{"fail on=operation code=Canceled/CanceledAndSupersededDueToAnotherOperation times=2", "clock 5s", "conflict pool=web answer=412 times=1", "scale web nodes=(n3)", "clock 80s"}},
		{"first take", `cluster drift=10m
nodes 4
lb kubernetes
pool kubernetes/web foreign=(10.9.0.1) holds=(n3)
service web pools=(web) nodes=(n1, n2)`, []string{"clock 10s", "scale web nodes=(n2)", "clock 6s"}},
		{"two lanes and the lease", `cluster drift=10m lease=15s
nodes 4
lb one
lb two
pool one/web foreign=(10.9.0.1)
pool two/api
pool two/api-ipv6 foreign=(fd00:9::1)
service web pools=(web) nodes=(n1, n2)
service api pools=(api, api-ipv6) nodes=(n3)`, []string{"clock 3s", "scale web api nodes=(n4)", "clock 5s", "lease take steal for=20s", "scale api nodes=(n1)", "clock 80s"}},
		{"late news", twoPools, []string{"clock 6s", "stale web for=10s", "stale nodes for=5s", "scale web nodes=(n3)", "node-lost n3", "clock 20s", "node-lost n3 back", "clock 6s"}},
	}
}

// newStage returns a stage that is closed with its bubble, however the test ends.
func newStage(t *testing.T) *Stage {
	t.Helper()
	return newStageOf(t, Options{Settle: synctest.Wait, MaxRetries: 3})
}

func newStageOf(t *testing.T, opts Options) *Stage {
	t.Helper()
	s := New(opts)
	t.Cleanup(func() {
		s.stopProcess("")
		s.cancelDelays()
		s.pendingWrites.Wait()
	})
	return s
}

func runStep(t *testing.T, s *Stage, lines ...string) {
	t.Helper()
	for _, text := range lines {
		first, input, _ := strings.Cut(text, "\n")
		step, err := ParseStep(first)
		if err != nil {
			t.Fatal(err)
		}
		step.Input = input
		if trace, err := s.Do(step); err != nil {
			t.Fatalf("%s: %v\n%s", text, err, trace)
		}
	}
}

func setUp(t *testing.T, s *Stage, overlap behavior.Result) {
	t.Helper()
	runStep(t, s, strings.Replace(twoPools, "drift=10m", "overlap="+string(overlap), 1))
}

// In each workload the process is killed before and after every call and ledger write, and
// restarted at once or at the end: all pools get in sync, and foreign addresses survive.
func TestKilledAtEveryCall(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	killed, points := 0, 0
	for _, w := range allWorkloads() {
		overlaps := armemu.OverlapAnswers()
		if w.name != "scale" { // the others differ in what else happens
			overlaps = []behavior.Result{behavior.Supersede}
		}
		for i, overlap := range overlaps {
			calls := w.runUndisturbed(t, overlap)
			for n := 1; n <= calls; n++ {
				for _, where := range []string{"", " after"} {
					kill := fmt.Sprintf("kill at=any nth=%d%s", n, where)
					killed += w.runKilled(t, overlap, kill, true)
					points++
					if i == 0 { // without overlap when the next process starts late
						killed += w.runKilled(t, overlap, kill, false)
						points++
					}
				}
			}
		}
	}
	if killed != points {
		t.Errorf("killed %d times, want %d", killed, points)
	}
	t.Logf("killed %d times in %d workloads, and in sync each time", killed, len(allWorkloads()))
}

// worldStep returns the world's step with a policy for overlapping writes.
func (w workload) worldStep(overlap behavior.Result) string {
	return strings.Replace(w.world, "cluster ", "cluster overlap="+string(overlap)+" ", 1)
}

// runUndisturbed runs a workload without a kill and returns the number of calls and ledger writes.
func (w workload) runUndisturbed(t *testing.T, overlap behavior.Result) (calls int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		runStep(t, s, w.worldStep(overlap))
		runStep(t, s, w.story...)
		for _, n := range s.takeCounts() {
			calls += n
		}
		runStep(t, s, "heal", "clock 25m", "expect calm")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if calls < 10 {
		t.Fatalf("%s makes %d calls: that is too short", w.name, calls)
	}
	return calls
}

// runKilled runs a workload with a kill and returns how often the process died.
func (w workload) runKilled(t *testing.T, overlap behavior.Result, kill string, atOnce bool) (killed int) {
	t.Helper()
	t.Run(fmt.Sprintf("%s/%s/%s/at once %t", w.name, overlap, kill, atOnce), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			runStep(t, s, w.worldStep(overlap), kill)
			for _, text := range w.story {
				if strings.HasPrefix(text, "stale") && s.runningProcess() == nil {
					continue // no process, no delay
				}
				runStep(t, s, text)
				if s.runningProcess() == nil && killed == 0 {
					killed++
					if atOnce {
						runStep(t, s, "restart")
					}
				}
			}
			if killed == 0 {
				t.Error("it does not die")
			}
			runStep(t, s, "heal", "restart dead", "clock 25m", "expect calm")
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	return killed
}
