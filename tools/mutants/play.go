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

const steps = 40 // of each seed

// errSeen is a check that failed.
var errSeen = errors.New("a check does not hold")

// play is what a build with a change does, in a process of its own: it plays seeds until one
// fails, and says which. Nothing is made shorter: that would cost more than the search.
func play(ctx context.Context, out io.Writer, seeds, jobs int) error {
	debug.SetGCPercent(400) // a schedule is short-lived, and there is room
	tally := simulate.Search{First: 1, Seeds: seeds, Steps: steps, Jobs: jobs, Most: 1}.Run(ctx)
	for _, f := range tally.Found {
		fmt.Fprintf(out, "seed %d: %s\n", f.Seed, f.Outcome.Check)
		return errSeen
	}
	return nil
}
