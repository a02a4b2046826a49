// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"weir.dev/weir/lab/simulate"
)

func (f *simulateFlags) runReplay() error {
	start := time.Now()
	raw, err := os.ReadFile(f.replay)
	if err != nil {
		return usageError{fmt.Errorf("--replay: %w", err)}
	}
	steps, lines, err := simulate.ParseScript(string(raw))
	if err != nil {
		return usageError{fmt.Errorf("--replay %s: %w", f.replay, err)}
	}
	o := simulate.RunSchedule(steps)
	if len(o.Skipped) > 0 {
		return usageError{fmt.Errorf("--replay %s: line %d: step %s", f.replay, lines[o.Skipped[0].Index], o.Skipped[0].Reason)}
	}
	if f.verbose {
		fmt.Fprint(f.err, simulate.Script("Played from "+f.replay+".", o))
	}
	result := simulateResult{File: f.replay, Steps: len(o.Steps), Found: []searchFailure{}}
	if o.HasFailed() {
		found := searchFailure{
			Check: o.Check, How: o.Detail, Steps: len(o.Steps), File: f.replay, Replay: "weirlab simulate --replay " + f.replay, outcome: o,
		}
		found.Line, found.Step = failedStep(o, lines)
		result.Found = append(result.Found, found)
	}
	result.Seconds = time.Since(start).Seconds()
	return f.printResult(result)
}

// failedStep returns the line and text of the step before the failed check; empty after a deadlock.
func failedStep(o simulate.Result, lines []int) (line int, step string) {
	if o.Check == simulate.LockUp {
		return 0, ""
	}
	last := len(o.Steps) - 1
	step, _, _ = strings.Cut(o.Steps[last].String(), "\n")
	return lines[last], step
}

func formatReplay(r simulateResult) string {
	text := ""
	for _, found := range r.Found {
		text += found.formatCheck()
		if found.Line > 0 {
			text += fmt.Sprintf("after %s:%d, step %d: %s\n", r.File, found.Line, found.Steps, found.Step)
		}
	}
	if text == "" {
		return fmt.Sprintf("%s: %d steps, all checks hold\n", r.File, r.Steps)
	}
	return text
}
