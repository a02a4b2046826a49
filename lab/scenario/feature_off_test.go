// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"
)

// With no node that drains every trace is the same as with the feature off. Every script is
// played without its taints, once with admin states and once without; what a script expects
// of the taints that it does not get counts for nothing.
func TestWithoutTaintsTheFeatureIsNotThere(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		steps, positions := parse(t, string(raw))
		on, off := playAs(t, steps, true), playAs(t, steps, false)
		for i := range steps {
			if on[i] != off[i] {
				t.Fatalf("%s: with the feature\n%s\nand without\n%s", positions[i], on[i], off[i])
			}
		}
	})
}

// playAs makes the steps, but for those about taints, with the feature on or off, and returns
// the trace of each, with what failed.
func playAs(t *testing.T, steps []Step, admin bool) []string {
	t.Helper()
	var traces []string
	synctest.Test(t, func(*testing.T) {
		s := New(Options{Settle: synctest.Wait, MaxRetries: 3, AdminState: admin})
		for _, step := range steps {
			if step.Verb == "taint" {
				traces = append(traces, "")
				continue
			}
			if step.Verb == "cluster" {
				step.Args = slices.DeleteFunc(slices.Clone(step.Args), func(a Arg) bool { return a.Key == "admin" })
			}
			trace, err := s.Do(step)
			if err != nil {
				trace += err.Error()
			}
			traces = append(traces, trace)
		}
		if err := s.Close(); err != nil {
			traces[len(traces)-1] += err.Error()
		}
	})
	return traces
}
