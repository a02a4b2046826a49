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

const steps = 40 // per seed

var errSeen = errors.New("a check does not hold")

// play runs seeds until one fails, and prints the failure. It does not minimize the schedule, which
// would take longer than the search.
func play(ctx context.Context, out io.Writer, seeds, jobs int) error {
	debug.SetGCPercent(400) // memory is plentiful and schedules are short-lived
	tally := simulate.Search{First: 1, Seeds: seeds, Steps: steps, Jobs: jobs, Most: 1}.Run(ctx)
	for _, f := range tally.Found {
		fmt.Fprintf(out, "seed %d: %s\n", f.Seed, f.Outcome.Check)
		return errSeen
	}
	return nil
}
