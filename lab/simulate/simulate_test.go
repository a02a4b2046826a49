// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"flag"
	"runtime"
	"strings"
	"testing"
	"time"

	"weir.dev/weir/lab/scenario"
)

const steps = 40

// seedCount is what make test searches; make nightly searches more.
var seedCount = flag.Int("seeds", defaultSeeds, "how many seeds")

// A failure is printed as a scenario: keep it in lab/scenario/testdata once fixed. -short runs the
// first 200.
func TestSeeds(t *testing.T) {
	seeds := *seedCount
	if testing.Short() {
		seeds = min(seeds, 200)
	}
	tally := Search{First: 1, Count: seeds, Steps: steps, Jobs: runtime.GOMAXPROCS(0), MaxFailures: 3}.Run(t.Context())
	for _, f := range tally.Failures {
		o, _ := ReduceSchedule(f.Result, ReduceLimit{Runs: 3000, Time: 30 * time.Second})
		t.Errorf("seed %d: check %q does not hold: %s\n%s", f.Seed, o.Check, o.Detail, Script("What it shows.", o))
	}
	if tally.Done < seeds && len(tally.Failures) == 0 {
		t.Errorf("%d seeds were played of %d", tally.Done, seeds)
	}
	t.Logf("%d seeds, %d steps", tally.Done, tally.Steps)
}

func TestSameSeedSameTrace(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	for seed := range uint64(25) {
		schedule := Schedule(seed, steps)
		next := make(chan Result)
		go func() { next <- RunSchedule(Schedule(seed, steps)) }()
		first, second := RunSchedule(schedule), <-next
		if first.TraceHash == second.TraceHash {
			continue
		}
		for i := range min(len(first.Traces), len(second.Traces)) {
			if first.Traces[i] != second.Traces[i] {
				t.Fatalf("seed %d, %s:\n%s\nand then\n%s", seed, first.Steps[i], first.Traces[i], second.Traces[i])
			}
		}
		t.Errorf("seed %d: %d steps, and then %d", seed, len(first.Steps), len(second.Steps))
	}
}

// Seeds differ, and most steps are applicable.
func TestSchedules(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long; make test does not leave it out")
	}
	seen, requested, made := map[string]uint64{}, 0, 0
	verbs := map[string]int{}
	for seed := range uint64(60) {
		schedule := Schedule(seed, steps)
		text := Script("", Result{Steps: schedule})
		if other, ok := seen[text]; ok {
			t.Errorf("seeds %d and %d are the same", seed, other)
		}
		seen[text] = seed
		o := RunSchedule(schedule)
		requested, made = requested+len(schedule), made+len(o.Steps)
		for _, step := range o.Steps {
			verbs[step.Verb]++
		}
	}
	if made*10 < requested*9 {
		t.Errorf("of %d steps only %d can be made", requested, made)
	}
	for _, v := range scenario.Verbs() {
		switch v.Name {
		case "calls", "events", "status", "flows", "delete-lb": // output steps, or deletion of the load balancer
		case "node-dead": // invisible to the process
		default:
			if verbs[v.Name] == 0 {
				t.Errorf("no schedule uses the verb %s", v.Name)
			}
		}
	}
}

// earlyRequestFailure fails because of an early request, with much unrelated noise.
func earlyRequestFailure(t *testing.T) Result {
	t.Helper()
	for seed := range uint64(20) { // s1 may be missing or paused
		schedule := append(Schedule(seed, 20), parseLines([]string{"clock 10m", "scale s1 nodes=(n1, n2)", "scale s1 nodes=(n3)", "clock 200ms", "expect in-sync", "clock 1h"})...)
		if o := RunSchedule(schedule); o.Check == "expect" && strings.Contains(schedule[0].Input, "service s1 pools=(a) ") {
			return o
		}
	}
	t.Fatal("none of them fails")
	return Result{}
}

func TestShrink(t *testing.T) {
	o, plays := ReduceSchedule(earlyRequestFailure(t), ReduceLimit{Runs: 2000, Time: time.Minute})
	script := Script("Too early.", o)
	if len(o.Steps) > 3 || strings.Count(o.Steps[0].Input, "\n") > 4 || o.Steps[len(o.Steps)-1].Verb != "expect" {
		t.Errorf("%d plays leave\n%s", plays, script)
	}
	read, _, err := ParseScript(script)
	if err != nil {
		t.Fatal(err)
	}
	second := RunSchedule(read)
	if second.Check != o.Check || second.Detail != o.Detail || second.TraceHash != o.TraceHash {
		t.Errorf("%s: %s, and read again %q: %s\n%s", o.Check, o.Detail, second.Check, second.Detail, script)
	}
}

func TestShrinkEndsEarly(t *testing.T) {
	failed := earlyRequestFailure(t)
	if o, plays := ReduceSchedule(failed, ReduceLimit{Runs: 3, Time: time.Minute}); plays > 3 || o.Check != failed.Check {
		t.Errorf("%d plays, check %q", plays, o.Check)
	}
}

func TestScriptsAreReadAsTheyAreWritten(t *testing.T) {
	o := RunSchedule(Schedule(11, steps))
	text := Script("A seed.", o)
	read, lines, err := ParseScript(text)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines {
		if got, want := strings.Split(text, "\n")[line-1], strings.SplitN(read[i].String(), "\n", 2)[0]; got != want {
			t.Errorf("step %d is said to be in line %d, which is %q, and is %q", i, line, got, want)
		}
	}
	if got, want := Script("", Result{Steps: read}), Script("", Result{Steps: o.Steps}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, _, err := ParseScript("# nothing\n"); err == nil {
		t.Error("a script without a step is read")
	}
}

func TestLockUp(t *testing.T) {
	if got := runInVirtualTime(func() { panic("at the wrong time") }); got != "panic: at the wrong time" {
		t.Errorf("a panic: %q", got)
	}
	if got := runInVirtualTime(func() { <-make(chan int) }); !strings.Contains(got, "deadlock") {
		t.Errorf("a deadlock: %q", got)
	}
	if got := runInVirtualTime(func() { time.Sleep(100 * time.Hour) }); got != "" {
		t.Errorf("hours: %q", got)
	}
}

func TestSearchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	tally := Search{First: 1, Jobs: 2, Steps: 3, OnProgress: func(now Progress) {
		if now.Done == 5 {
			cancel()
		}
	}}.Run(ctx)
	if tally.Done < 5 || tally.Done > 8 {
		t.Errorf("%d seeds", tally.Done)
	}
	if tally := (Search{First: 1, Jobs: 2, Steps: 3, Timeout: time.Nanosecond}).Run(t.Context()); tally.Done > 2 {
		t.Errorf("%d seeds in no time", tally.Done)
	}
}
