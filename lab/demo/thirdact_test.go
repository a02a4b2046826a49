// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"strings"
	"testing"
)

// Weir handles one of two evictions: only new flows are lost, and only in the second.
func TestTheThirdActAgainstRealProcesses(t *testing.T) {
	before := []step{{name: "deploy", run: (*stage).createWorkloads}, {name: "nodes join", run: (*stage).addNodes}, {name: "scale up", run: (*stage).scaleOut}}
	opts, out, lines := realOptions(t, append(before, actSteps("Third act")...)...)
	if err := Run(t.Context(), opts); err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	s := summaryOf(t, out)
	e := s.Evictions
	if !s.OK || len(s.Steps) != 5 || e == nil || e.With.Node == e.Without.Node || e.With.Rules < 1 || e.Without.Rules < 1 {
		t.Fatalf("%+v %+v", s, e)
	}
	if e.With.Misdirected != 0 || e.With.Seconds <= 0 || e.With.Seconds >= noticeTime.Seconds() {
		t.Errorf("announced: %+v", e.With)
	}
	// Two probes five seconds apart notice it, and one of at most six nodes is dead.
	if e.Without.Seconds < noticeTime.Seconds()+10 || e.Without.Misdirected < 10.0/6 {
		t.Errorf("not announced: %+v", e.Without)
	}
	reported := strings.Join(strings.Fields(lines.String()), " ")
	for _, want := range []string{"event PreemptScheduled", "it is Down for ", "have noticed", "SpotEvictionTaintAdded", "new flows met a dead machine for 0.0 s"} {
		if !strings.Contains(reported, want) {
			t.Errorf("nothing says %q:\n%s", want, lines)
		}
	}
	checkLines(t, lines)
}
