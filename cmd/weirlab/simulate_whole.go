// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"weir.dev/weir/lab/simulate"
)

// sayWhole prints the result of simulating the whole controller. It saves the log of a failed seed; replay it
// by its seed, because its schedule cannot be saved as a scenario.
func (f *simulateFlags) sayWhole(tally simulate.Tally, took time.Duration) error {
	result := simulateResult{First: f.search.First, Seeds: tally.Done, Seconds: took.Seconds(), Found: []finding{}}
	for _, found := range tally.Found[:min(1, len(tally.Found))] {
		file := fmt.Sprintf("weir-whole-%d.log", found.Seed)
		again, log := simulate.PlayWhole(found.Seed, f.search.Steps)
		if !again.Failed() {
			log = "It held when it was played again: two requests of one instant came in another order.\n" + log
		}
		if err := os.WriteFile(file, []byte(found.Outcome.How+"\n\n"+log+"\n"), 0o600); err != nil {
			return err
		}
		result.Found = append(result.Found, finding{
			Seed: found.Seed, Check: found.Outcome.Check, How: found.Outcome.How, File: file,
			Replay: fmt.Sprintf("weirlab simulate --whole --seed %d --seeds 1 --steps %d", found.Seed, f.search.Steps),
		})
	}
	if f.output == "json" {
		if err := json.NewEncoder(f.out).Encode(result); err != nil {
			return err
		}
	} else {
		f.spellWhole(result)
	}
	if len(result.Found) > 0 {
		return errFound
	}
	return nil
}

func (f *simulateFlags) spellWhole(r simulateResult) {
	verdict := "all checks hold"
	for _, found := range r.Found {
		verdict = "1 failed"
		fmt.Fprintf(f.out, "seed %d: %swhat happened is in %s\nagain:   %s\n\n", found.Seed, found.spell(), found.File, found.Replay)
	}
	fmt.Fprintf(f.out, "seeds %d to %d with all of Weir: %d played, %.1f s: %s\n",
		r.First, r.First+uint64(max(r.Seeds, 1))-1, r.Seeds, r.Seconds, verdict) //nolint:gosec // a count
}
