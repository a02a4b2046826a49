// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/lab/armemu"
)

// updateHundred changes 100 pools of one load balancer at once and returns the number of writes and the
// time until all are reported.
func updateHundred(t testing.TB, pipelined bool) (writes int, elapsed time.Duration) {
	synctest.Test(t.(*testing.T), func(t *testing.T) {
		s := New(Options{Settle: synctest.Wait, MaxRetries: 3, Latency: armemu.Quiet, Behaviour: behavior.AssumedBehavior(), Pipelined: pipelined})
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		var world strings.Builder
		world.WriteString("nodes 3\nlb lb1")
		names := make([]string, 100)
		for i := range names {
			names[i] = fmt.Sprintf("s%02d", i)
			fmt.Fprintf(&world, "\npool lb1/p%02d\nservice %s pools=(p%02d) nodes=(n1)", i, names[i], i)
		}
		do := func(line, input string) {
			step, err := ParseStep(line)
			if err != nil {
				t.Fatal(err)
			}
			step.Input = input
			if _, err := s.Do(step); err != nil {
				t.Error(err)
			}
		}
		do("cluster", world.String())
		do("clock 1h", "")
		before, start := s.history.counts["PUT"], time.Now()
		do("scale "+strings.Join(names, " ")+" nodes=(n1, n2)", "")
		for !s.isInSync() {
			s.sleepFor(time.Second)
		}
		writes, elapsed = s.history.counts["PUT"]-before, time.Since(start)
	})
	return writes, elapsed
}

// isInSync reports whether all pools are in sync and nothing is queued.
func (s *Stage) isInSync() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.pools {
		if s.outOfSyncReason(k) != "" {
			return false
		}
	}
	return s.isIdle(s.process)
}

// 100 pools of one load balancer take at most a tenth of the time with pipelined writes, and no
// more writes.
func TestAHundredPoolsInATenthOfTheTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	serialWrites, serial := updateHundred(t, false)
	writes, elapsed := updateHundred(t, true)
	t.Logf("one by one %d writes in %s, pipelined %d in %s", serialWrites, serial, writes, elapsed)
	if writes > serialWrites || elapsed*10 > serial {
		t.Errorf("one by one %d writes in %s, pipelined %d in %s", serialWrites, serial, writes, elapsed)
	}
}
