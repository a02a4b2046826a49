// SPDX-License-Identifier: Apache-2.0

package demo

import "testing"

// A Gateway gets an address and a rule, and leaves nothing.
func TestTheFifthActAgainstRealProcesses(t *testing.T) {
	opts, out, lines := realOptions(t, actSteps("Fifth act")...)
	if err := Run(t.Context(), opts); err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	s := summaryOf(t, out)
	if g := s.Gateway; !s.OK || g == nil || g.Seconds <= 0 || g.Removed <= 0 || s.ARM.PublicIPs < 2 || s.Steps[0].Balancers < 2 || s.Steps[0].Early > 0 {
		t.Fatalf("%+v %+v\n%s", s, g, lines)
	}
	checkLines(t, lines)
	if files := leftoverFiles(t); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}
