// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"runtime"
	"testing"
	"time"
)

func TestPipelinedSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	seeds := *seedCount / 5
	tally := Search{First: 1, Count: seeds, Steps: steps, Concurrent: true, Jobs: runtime.GOMAXPROCS(0), MaxFailures: 3}.Run(t.Context())
	for _, f := range tally.Failures {
		o, _ := ReduceSchedule(f.Result, ReduceLimit{Runs: 3000, Time: 30 * time.Second})
		t.Errorf("seed %d: check %q does not hold: %s\n%s", f.Seed, o.Check, o.Detail, Script("What it shows.", o))
	}
	if tally.Done < seeds && len(tally.Failures) == 0 {
		t.Errorf("%d seeds were played of %d", tally.Done, seeds)
	}
}
