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
func (f *simulateFlags) printFull(progress simulate.Progress, elapsed time.Duration) error {
	result := simulateResult{First: f.search.First, Seeds: progress.Done, Seconds: elapsed.Seconds(), Found: []searchFailure{}}
	for _, found := range progress.Failures[:min(1, len(progress.Failures))] {
		file := fmt.Sprintf("weir-whole-%d.log", found.Seed)
		repeated, log := simulate.RunFull(found.Seed, f.search.Steps)
		if !repeated.HasFailed() {
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
	result := "all checks hold"
	for _, found := range r.Found {
		result = "1 failed"
		fmt.Fprintf(f.out, "seed %d: %swhat happened is in %s\nagain:   %s\n\n", found.Seed, found.formatCheck(), found.File, found.Replay)
	}
	fmt.Fprintf(f.out, "seeds %d to %d with all of Weir: %d played, %.1f s: %s\n",
		r.First, r.First+uint64(max(r.Seeds, 1))-1, r.Seeds, r.Seconds, result) //nolint:gosec // a count
}
