// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"weir.dev/weir/internal/lb/behavior"
	"weir.dev/weir/test/shipped"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScripts runs every script twice: the trace must match the file both times. With -rewrite the
// file is updated if all checks hold.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(raw), "# ") {
			t.Errorf("%s does not begin with a sentence that says what it shows", path)
		}
		steps, positions := parseScript(t, string(raw))
		first := playScript(t, behavior.AssumedBehavior(), steps, positions)
		if second := playScript(t, behavior.AssumedBehavior(), steps, positions); !slices.Equal(first, second) {
			for i := range first {
				if first[i] != second[i] {
					t.Fatalf("%s: the same step gave\n%s\nand then\n%s", positions[i], first[i], second[i])
				}
			}
		}
		if t.Failed() {
			return
		}
		next := 0
		datadriven.RunTest(t, path, func(*testing.T, *datadriven.TestData) string {
			next++
			return first[next-1]
		})
	})
}

// parseScript reads a script outside of any bubble.
func parseScript(t *testing.T, script string) (steps []Step, positions []string) {
	t.Helper()
	datadriven.RunTestFromString(t, script, func(_ *testing.T, d *datadriven.TestData) string {
		step := Step{Verb: d.Cmd, Input: d.Input}
		for _, a := range d.CmdArgs {
			step.Args = append(step.Args, Arg{Key: a.Key, Values: a.Vals})
		}
		if second, err := ParseStep(strings.SplitN(step.String(), "\n", 2)[0]); err != nil || second.String() != (Step{Verb: step.Verb, Args: step.Args}).String() {
			t.Errorf("%s: %q reads as %q: %v", d.Pos, step, second, err)
		}
		steps, positions = append(steps, step), append(positions, d.Pos+" "+d.FullCmd())
		return d.Expected
	})
	return steps, positions
}

// playScript runs the steps on a new stage in a world and returns their traces.
func playScript(t *testing.T, world behavior.Behavior, steps []Step, positions []string) []string {
	t.Helper()
	var traces []string
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Settle: synctest.Wait, MaxRetries: 3, Role: shipped.AzureRole(), Behaviour: world})
		for i, step := range steps {
			trace, err := s.Do(step)
			traces = append(traces, trace)
			if err != nil {
				t.Errorf("%s: %v\n%s", positions[i], err, strings.Join(traces, ""))
				break
			}
		}
		if err := s.Close(); err != nil {
			t.Errorf("at the end: %v", err)
		}
	})
	return traces
}
