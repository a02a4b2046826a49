// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

// 200 nodes join one per second: with little quota left, the pool of all nodes is written at the
// pace of the interval.
func TestTwoHundredNodesJoinAPool(t *testing.T) {
	const nodes, seconds = 200, 200
	do := func(s *Stage, text, input string) string {
		t.Helper()
		step, err := ParseStep(text)
		if err != nil {
			t.Fatal(err)
		}
		step.Input = input
		trace, err := s.Do(step)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return trace
	}
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Settle: synctest.Wait, MaxRetries: 3, SharePercent: 1})
		do(s, "cluster", fmt.Sprintf("nodes %d\nlb kubernetes\npool kubernetes/shared\npool kubernetes/web\nservice web pools=(web) nodes=(n1)", nodes))
		names := []string{"n1"}
		var trace strings.Builder
		trace.WriteString(do(s, "create-backendpool shared nodes=(n1)", ""))
		for n := 2; n <= nodes; n++ {
			names = append(names, fmt.Sprintf("n%d", n))
			trace.WriteString(do(s, "select shared nodes=("+strings.Join(names, ", ")+")", ""))
			trace.WriteString(do(s, "clock 1s", ""))
		}
		trace.WriteString(do(s, "clock 1m", ""))
		do(s, "expect in-sync", "")
		writes := 0
		for line := range strings.Lines(trace.String()) {
			if strings.Contains(line, " shared ") && strings.Contains(line, " PUT ") {
				writes++
			}
		}
		// The remainder of the initial ten writes in five minutes, and one per interval of 30 s.
		if limit := 10 + (seconds+60)/30 + 1; writes < 4 || writes > limit {
			t.Errorf("%d writes for %d nodes, want at most %d", writes, nodes, limit)
		}
		t.Logf("%d nodes in %d s: %d writes", nodes, seconds, writes)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
