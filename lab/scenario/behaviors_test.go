// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir.dev/weir/internal/lb/behavior"
)

// TestScriptsInEveryWorld runs every script in other Azure behaviors than the recorded one:
// expectations and checks hold in each. A script about one behavior fixes it in its first step. Six
// worlds cover every answer, and every pair for questions with two answers.
func TestScriptsInEveryWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, world := range behavior.SampleBehaviors() {
		t.Run("world "+world.String(), func(t *testing.T) {
			datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				steps, positions := parseScript(t, string(raw))
				playScript(t, world, steps, positions)
				if t.Failed() {
					t.Logf("to see it, give the first step of %s the arguments\n%s", path, world)
				}
			})
		})
	}
}
