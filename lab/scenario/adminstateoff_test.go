// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"
)

// Without draining nodes every trace equals that with the feature off. Every script runs without
// its taints, with and without admin states; expectations about the omitted taints are ignored.
func TestWithoutTaintsTheFeatureIsNotThere(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		steps, positions := parseScript(t, string(raw))
		on, off := playAs(t, steps, true), playAs(t, steps, false)
		for i := range steps {
			if on[i] != off[i] {
				t.Fatalf("%s: with the feature\n%s\nand without\n%s", positions[i], on[i], off[i])
			}
		}
	})
}

// playAs runs all steps except those about taints and returns the traces and failures.
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
