// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// Act two needs only the pods of one Service of act one.
func TestTheSecondActAgainstRealProcesses(t *testing.T) {
	opts, out, lines := realOptions(t, append([]step{{name: "deploy", run: (*stage).createWorkloads}}, actSteps("Second act")...)...)
	if err := Run(t.Context(), opts); err != nil {
		t.Fatalf("%v\n%s", err, lines)
	}
	s := summaryOf(t, out)
	c := s.Bulk
	if !s.OK || len(s.Steps) != 6 || c == nil || s.SyncFailed != 1 || c.Services != len(allWorkloads)+bulkRemaining || c.Frontends != c.Services || c.PublicIPs != c.Services {
		t.Fatalf("%+v %+v", s, c)
	}
	for _, f := range []SyncCost{c.Appeared, c.Changed, c.Deleted} {
		if f.Balancers < 1 || f.Balancers > expectedWrites || f.Seconds <= 0 {
			t.Errorf("%+v", f)
		}
	}
	if c.Appeared.PublicIPs != bulkSize || c.Changed.PublicIPs != 0 || c.Deleted.PublicIPs != bulkSize-bulkRemaining || c.Refused.Writes != 0 {
		t.Errorf("%+v", c)
	}
	for _, want := range []string{`azure-load-balanc`, `is "soon": want a whole number of minutes from 4 to`, "50/50 served, ", "left in Azure: 6 frontends and 6 public IPs for 6 Services"} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("nothing says %q:\n%s", want, lines)
		}
	}
	checkLines(t, lines)
}

func actSteps(act string) []step {
	var of []step
	for _, s := range allSteps(true) {
		if len(of) > 0 && s.title == "" || strings.HasPrefix(s.title, act) {
			of = append(of, s)
		} else if len(of) > 0 {
			break
		}
	}
	return of
}

// checkLines checks the line width and that there are no colors.
func checkLines(t *testing.T, lines *bytes.Buffer) {
	t.Helper()
	for row := range strings.Lines(lines.String()) {
		if utf8.RuneCountInString(strings.TrimSuffix(row, "\n")) > width || strings.Contains(row, "\x1b") {
			t.Errorf("%q", row)
		}
	}
}
