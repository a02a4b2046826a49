// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"weir.dev/weir/lab/simulate"
)

// printFull prints the result of simulating the whole controller. It saves the log of a failed seed; replay it
// by its seed, because its schedule cannot be saved as a scenario.
func (f *simulateFlags) printFull(tally simulate.Progress, took time.Duration) error {
	result := simulateResult{First: f.search.First, Seeds: tally.Done, Seconds: took.Seconds(), Found: []searchFailure{}}
	for _, found := range tally.Failures[:min(1, len(tally.Failures))] {
		file := fmt.Sprintf("weir-whole-%d.log", found.Seed)
		again, log := simulate.RunFull(found.Seed, f.search.Steps)
		if !again.HasFailed() {
			log = "It held when it was played again: two requests of one instant came in another order.\n" + log
		}
		if err := os.WriteFile(file, []byte(found.Result.Detail+"\n\n"+log+"\n"), 0o600); err != nil {
			return err
		}
		result.Found = append(result.Found, searchFailure{
			Seed: found.Seed, Check: found.Result.Check, How: found.Result.Detail, File: file,
			Replay: fmt.Sprintf("weirlab simulate --whole --seed %d --seeds 1 --steps %d", found.Seed, f.search.Steps),
		})
	}
	if f.output == "json" {
		if err := json.NewEncoder(f.out).Encode(result); err != nil {
			return err
		}
	} else {
		f.formatFull(result)
	}
	if len(result.Found) > 0 {
		return errCheckFailed
	}
	return nil
}

func (f *simulateFlags) formatFull(r simulateResult) {
	verdict := "all checks hold"
	for _, found := range r.Found {
		verdict = "1 failed"
		fmt.Fprintf(f.out, "seed %d: %swhat happened is in %s\nagain:   %s\n\n", found.Seed, found.formatCheck(), found.File, found.Replay)
	}
	fmt.Fprintf(f.out, "seeds %d to %d with all of Weir: %d played, %.1f s: %s\n",
		r.First, r.First+uint64(max(r.Seeds, 1))-1, r.Seeds, r.Seconds, verdict) //nolint:gosec // a count
}
