// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"weir.dev/weir/lab/simulate"
)

const stepsPerSeed = 40 // per seed

var errCheckFailed = errors.New("a check does not hold")

// runSimulation runs seeds until one fails, and prints the failure. It does not minimize the schedule, which
// would take longer than the search.
func runSimulation(ctx context.Context, out io.Writer, seeds, jobs int) error {
	debug.SetGCPercent(400) // memory is plentiful and schedules are short-lived
	tally := simulate.Search{First: 1, Count: seeds, Steps: stepsPerSeed, Jobs: jobs, MaxFailures: 1}.Run(ctx)
	for _, f := range tally.Failures {
		fmt.Fprintf(out, "seed %d: %s\n", f.Seed, f.Result.Check)
		return errCheckFailed
	}
	return nil
}
