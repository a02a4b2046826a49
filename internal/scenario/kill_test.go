// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"testing"
	"testing/synctest"

	"weir.dev/weir/internal/armemu"
)

// killStory changes two pools of one load balancer several times, with foreign
// addresses in both, so that addresses come and go.
var killStory = []string{
	"clock 1s", "scale web api nodes=(n2, n3)", "clock 3s", "scale web nodes=(n3)", "clock 3s",
	"scale api nodes=(n1, n2, n3)", "clock 6s", "scale web nodes=(n1)", "clock 12s",
}

// newStage returns a stage that ends with its bubble, however the test ends.
func newStage(t *testing.T) *Stage {
	s := New(Options{Settle: synctest.Wait, MaxRetries: 3})
	t.Cleanup(func() {
		s.stop("")
		s.sendHome()
		s.underWay.Wait()
	})
	return s
}

func do(t *testing.T, s *Stage, lines ...string) {
	t.Helper()
	for _, text := range lines {
		step, err := ParseStep(text)
		if err != nil {
			t.Fatal(err)
		}
		if trace, err := s.Do(step); err != nil {
			t.Fatalf("%s: %v\n%s", text, err, trace)
		}
	}
}

func setUp(t *testing.T, s *Stage, overlap armemu.Overlap) {
	t.Helper()
	step := Step{Verb: "cluster", Args: []Arg{{Key: "overlap", Values: []string{string(overlap)}}}, Input: `nodes 4
lb kubernetes
pool kubernetes/web foreign=(10.9.0.1)
pool kubernetes/api foreign=(10.9.0.2)
service web pools=(web) nodes=(n1, n2)
service api pools=(api) nodes=(n3)`}
	if trace, err := s.Do(step); err != nil {
		t.Fatalf("%v\n%s", err, trace)
	}
}

// A process is killed before and after each call that it makes, and started again at
// once or when the story is over: the pools are level in the end, and foreign
// addresses are all there.
func TestKilledAtEveryCall(t *testing.T) {
	calls := 0
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		setUp(t, s, armemu.Supersede)
		do(t, s, killStory...)
		for _, n := range s.counted() {
			calls += n
		}
		do(t, s, "expect calm")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if calls < 20 {
		t.Fatalf("the undisturbed story makes %d calls: that is too short", calls)
	}
	killed := 0
	for _, overlap := range armemu.Overlaps() {
		for n := 1; n <= calls; n++ {
			for _, where := range []string{"", " after"} {
				for _, atOnce := range []bool{true, false} {
					if !atOnce && overlap != armemu.Supersede {
						continue // nothing overlaps by then
					}
					name := fmt.Sprintf("%s/call %d%s/at once %t", overlap, n, where, atOnce)
					t.Run(name, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							killed += playKilled(t, overlap, fmt.Sprintf("kill at=any nth=%d%s", n, where), atOnce)
						})
					})
				}
			}
		}
	}
	if want := 2 * calls * (len(armemu.Overlaps()) + 1); killed != want {
		t.Errorf("killed %d times at %d calls, want %d", killed, calls, want)
	}
	t.Logf("killed %d times, at each of %d calls", killed, calls)
}

// playKilled plays the story and returns how often the process died in it.
func playKilled(t *testing.T, overlap armemu.Overlap, kill string, atOnce bool) (killed int) {
	s := newStage(t)
	setUp(t, s, overlap)
	do(t, s, kill)
	for _, text := range killStory {
		do(t, s, text)
		if s.alive() == nil && killed == 0 {
			killed++
			if atOnce {
				do(t, s, "restart")
			}
		}
	}
	if s.alive() == nil {
		do(t, s, "restart")
	}
	do(t, s, "clock 2m", "expect calm")
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	return killed
}
