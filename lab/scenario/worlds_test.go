// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"os"
	"testing"

	"github.com/cockroachdb/datadriven"

	"weir.dev/weir/internal/behaviour"
)

// TestScriptsInEveryWorld plays every script in Azures other than the one whose trace it
// shows: what it expects, and all checks, hold in each. A script that is about one answer
// says so in its first step, and keeps it. Six worlds are enough for every answer, and for
// every two to questions with two.
func TestScriptsInEveryWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for _, world := range behaviour.Worlds() {
		t.Run("world "+world.String(), func(t *testing.T) {
			datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				steps, positions := parse(t, string(raw))
				play(t, world, steps, positions)
				if t.Failed() {
					t.Logf("to see it, give the first step of %s the arguments\n%s", path, world)
				}
			})
		})
	}
}
