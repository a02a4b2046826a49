// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"weir.dev/weir/lab/simulate"
)

type simulateFlags struct {
	search   simulate.Search
	replay   string
	output   string
	verbose  bool
	out, err io.Writer
}

func newSimulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Search for a schedule of changes and faults that violates a check",
		Long: `Plays random schedules in virtual time: endpoints and nodes come and go, Azure
throttles, fails and loses answers, others write the same pools, news come late, the
resource lease is taken away, the process is killed. After every step it checks all
that has to hold. Hours pass in milliseconds.

A seed stands for its schedule: the same seed gives the same trace. One that fails is
made as short as possible, printed as a scenario, and saved to a file to replay.
See docs/reference/simulator.md.

Exit codes: 0 all held, 1 a check failed, 2 a flag or file is wrong.
Ctrl-C ends the search, and what was played by then counts.`,
		Example: `  weirlab simulate
  weirlab simulate --seed 7 --seeds 1 --verbose
  weirlab simulate --for 10m --steps 80
  weirlab simulate --replay weir-seed-7.scenario`,
		Args:         rejectArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validateFlags(cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process
			f.out, f.err = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if f.replay != "" {
				return f.runReplay()
			}
			return f.runSearch(ctx)
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.Uint64Var(&f.search.First, "seed", 1, "the first seed")
	flags.IntVar(&f.search.Count, "seeds", 100, "how many seeds, counted up from the first; 0 is without end")
	flags.DurationVar(&f.search.Timeout, "for", 0, "play seeds for this long instead, e.g. 10m")
	flags.IntVar(&f.search.Steps, "steps", 40, "how many things happen in a schedule")
	flags.IntVar(&f.search.Jobs, "jobs", runtime.NumCPU(), "how many seeds are played at once")
	flags.BoolVar(&f.search.Full, "whole", false, "play all of Weir, as it is wired, against an API server and an Azure in memory")
	flags.BoolVar(&f.search.Concurrent, "pipelined", false, "have many pools of one load balancer change at once, and writes overlap")
	flags.StringVar(&f.replay, "replay", "", "play the steps of this scenario file instead")
	flags.BoolVar(&f.verbose, "verbose", false, "print every step of one seed, or of a file, with what happened")
	flags.StringVarP(&f.output, "output", "o", "text", "how to print the result: text, or json for one line")
	return cmd
}

func (f *simulateFlags) validateFlags(isSet func(flag string) bool) error {
	if f.replay != "" {
		for _, flag := range []string{"seed", "seeds", "for", "steps", "jobs", "whole", "pipelined"} {
			if isSet(flag) {
				return fmt.Errorf("--%s has no effect on a file: leave it out with --replay", flag)
			}
		}
	}
	switch {
	case f.output != "text" && f.output != "json":
		return fmt.Errorf("--output %q: use text or json", f.output)
	case f.search.Count < 0 || f.search.Steps < 1 || f.search.Jobs < 1:
		return errors.New("--seeds cannot be negative; --steps and --jobs are 1 at least")
	case f.search.Full && f.search.Concurrent:
		return errors.New("use --whole or --pipelined, not both")
	case f.search.Timeout < 0:
		return errors.New("--for cannot be negative")
	case f.search.Timeout > 0 && isSet("seeds"):
		return errors.New("use --seeds or --for, not both")
	case f.verbose && f.replay == "" && (f.search.Count != 1 || f.search.Timeout > 0):
		return errors.New("--verbose shows one seed: use --seeds 1 with it")
	}
	if f.search.Timeout > 0 {
		f.search.Count = 0
	}
	return nil
}

// searchFailure is a failure, for JSON output.
type searchFailure struct {
	Seed  uint64 `json:"seed,omitempty"`
	Check string `json:"check"`
	How   string `json:"how"`
	Steps int    `json:"steps"`
	Plays int    `json:"plays,omitempty"`
	File  string `json:"file"`
	// Step and Line locate the step of the file after which the check failed; empty if unknown.
	Line    int    `json:"line,omitempty"`
	Step    string `json:"step,omitempty"`
	Replay  string `json:"replay"`
	outcome simulate.Result
}

type simulateResult struct {
	First uint64 `json:"first,omitempty"`
	Seeds int    `json:"seeds,omitempty"`
	// File is the replayed scenario file.
	File  string `json:"file,omitempty"`
	Steps int    `json:"steps"`
	// Seconds is wall-clock time.
	Seconds     float64         `json:"seconds"`
	Interrupted bool            `json:"interrupted,omitempty"`
	Found       []searchFailure `json:"found"`
}

var maxSearchEffort = simulate.ReduceLimit{Runs: 3000, Time: time.Minute}

// errCheckFailed ends the process with code 1 after the failure was printed.
var errCheckFailed = errors.New("a check does not hold")

func (f *simulateFlags) runSearch(ctx context.Context) error {
	start := time.Now()
	f.search.MaxFailures = 1
	shown := f.newProgress(start)
	f.search.OnProgress = shown.updateLine
	progress := f.search.Run(ctx)
	shown.clearLine()
	result := simulateResult{First: f.search.First, Seeds: progress.Done, Steps: progress.Steps, Interrupted: ctx.Err() != nil, Found: []searchFailure{}}
	if f.search.Full {
		return f.printFull(progress, time.Since(start))
	}
	for _, found := range progress.Failures[:min(1, len(progress.Failures))] {
		fmt.Fprintf(f.err, "seed %d fails; looking for a shorter script\n", found.Seed)
		shortest, plays := simulate.ReduceSchedule(found.Result, maxSearchEffort)
		file := fmt.Sprintf("weir-seed-%d.scenario", found.Seed)
		sentence := fmt.Sprintf("Seed %d of %d steps breaks check %q: %s", found.Seed, f.search.Steps, shortest.Check, shortest.Detail)
		if err := os.WriteFile(file, []byte(simulate.Script(sentence, shortest)), 0o600); err != nil {
			return err
		}
		result.Found = append(result.Found, searchFailure{
			Seed: found.Seed, Check: shortest.Check, How: shortest.Detail, Steps: len(shortest.Steps), Plays: plays,
			File: file, Replay: "weirlab simulate --replay " + file, outcome: shortest,
		})
	}
	if f.verbose {
		o := f.search.RunSeed(f.search.First)
		fmt.Fprint(f.err, simulate.Script(fmt.Sprintf("Seed %d of %d steps.", f.search.First, f.search.Steps), o))
	}
	result.Seconds = time.Since(start).Seconds()
	return f.printResult(result)
}

func (f *simulateFlags) printResult(r simulateResult) error {
	var err error
	if f.output == "json" {
		err = json.NewEncoder(f.out).Encode(r)
	} else {
		_, err = io.WriteString(f.out, f.formatResult(r))
	}
	if err == nil && len(r.Found) > 0 {
		err = errCheckFailed
	}
	return err
}

func (f searchFailure) formatCheck() string {
	return fmt.Sprintf("check %q does not hold:\n  %s\n", f.Check, f.How)
}

func (f *simulateFlags) formatResult(r simulateResult) string {
	if r.File != "" {
		return formatReplay(r)
	}
	text := ""
	for _, found := range r.Found {
		text += simulate.Script(fmt.Sprintf("Seed %d.", found.Seed), found.outcome) + "\n"
		text += found.formatCheck()
		text += fmt.Sprintf("saved to %s (%d steps, the shortest of %d plays)\nagain:   %s --verbose\n\n", found.File, found.Steps, found.Plays, found.Replay)
	}
	result := "all checks hold"
	if len(r.Found) > 0 {
		result = "1 failed"
	}
	if r.Interrupted {
		result += "; interrupted"
	}
	return text + fmt.Sprintf("seeds %d to %d: %d played, %d steps, %.1f s, %.0f seeds/s: %s\n",
		r.First, r.First+uint64(max(r.Seeds, 1))-1, r.Seeds, r.Steps, r.Seconds, float64(r.Seeds)/r.Seconds, result)
}

type progressLine struct {
	out   io.Writer // nil if standard error is not a terminal
	start time.Time
	last  time.Time
}

func (f *simulateFlags) newProgress(start time.Time) *progressLine {
	p := &progressLine{start: start}
	if file, ok := f.err.(*os.File); ok && term.IsTerminal(int(file.Fd())) { //nolint:gosec // a file descriptor is small
		p.out = file
	}
	return p
}

func (p *progressLine) updateLine(t simulate.Progress) {
	if p.out == nil || time.Since(p.last) < 200*time.Millisecond {
		return
	}
	p.last = time.Now()
	fmt.Fprintf(p.out, "\r\x1b[K%d seeds, %.0f a second, %d steps, %d found", t.Done, float64(t.Done)/time.Since(p.start).Seconds(), t.Steps, len(t.Failures))
}

func (p *progressLine) clearLine() {
	if p.out != nil {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
