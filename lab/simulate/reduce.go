// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/lab/scenario"
)

// ReduceLimit limits runs and real time.
type ReduceLimit struct {
	Runs int
	Time time.Duration
}

type reducer struct {
	best          Result
	remainingRuns int
	deadline      time.Time
}

// ReduceSchedule returns the shortest schedule found that fails the same check, and the number of runs.
func ReduceSchedule(failed Result, effort ReduceLimit) (shortest Result, plays int) {
	s := &reducer{best: failed, deadline: time.Now().Add(effort.Time)}
	s.remainingRuns = effort.Runs
	for before := -1; before != scriptSize(s.best.Steps) && !s.isDone(); {
		before = scriptSize(s.best.Steps)
		s.dropSteps()
		s.mergeDelays()
		s.dropLines()
		s.reduceArgs()
	}
	return s.best, effort.Runs - s.remainingRuns
}

func scriptSize(steps []scenario.Step) int {
	n := 0
	for _, s := range steps {
		n += len(s.String())
	}
	return n
}

func (r *reducer) isDone() bool { return r.remainingRuns <= 0 || time.Now().After(r.deadline) }

func (r *reducer) tryReplace(steps []scenario.Step) bool {
	if r.isDone() {
		return false
	}
	r.remainingRuns--
	o := RunSchedule(steps)
	if o.failureKind() != r.best.failureKind() || o.Steps[0].Verb != "cluster" || scriptSize(o.Steps) > scriptSize(r.best.Steps) {
		return false
	}
	r.best = o
	return true
}

// dropSteps tries large pieces first. The first step creates the world and is kept.
func (r *reducer) dropSteps() {
	for piece := max(1, len(r.best.Steps)/2); piece >= 1; piece /= 2 {
		for at := len(r.best.Steps) - piece; at >= 1 && !r.isDone(); at -= piece {
			if at+piece > len(r.best.Steps) {
				continue // shorter by now
			}
			r.tryReplace(slices.Delete(slices.Clone(r.best.Steps), at, at+piece))
		}
	}
}

func (r *reducer) mergeDelays() {
	for at := len(r.best.Steps) - 2; at >= 1 && !r.isDone(); at-- {
		if at+1 >= len(r.best.Steps) {
			continue
		}
		first, ok := clockDuration(r.best.Steps[at])
		second, too := clockDuration(r.best.Steps[at+1])
		if ok && too {
			steps := slices.Delete(slices.Clone(r.best.Steps), at, at+1)
			steps[at] = clockStep(first + second)
			r.tryReplace(steps)
		}
	}
}

func clockDuration(step scenario.Step) (time.Duration, bool) {
	if step.Verb != "clock" || len(step.Args) != 1 {
		return 0, false
	}
	d, err := time.ParseDuration(step.Args[0].Key)
	return d, err == nil
}

func clockStep(d time.Duration) scenario.Step {
	return scenario.Step{Verb: "clock", Args: []scenario.Arg{{Key: d.String()}}}
}

func (r *reducer) dropLines() {
	for at := range r.best.Steps {
		for line := strings.Count(r.best.Steps[min(at, len(r.best.Steps)-1)].Input, "\n"); line >= 0 && !r.isDone(); line-- {
			if at >= len(r.best.Steps) || r.best.Steps[at].Input == "" {
				break
			}
			lines := strings.Split(r.best.Steps[at].Input, "\n")
			if line < len(lines) {
				r.replaceStep(at, r.best.Steps[at].Args, strings.Join(slices.Delete(lines, line, line+1), "\n"))
			}
		}
	}
}

func (r *reducer) reduceArgs() {
	for at := len(r.best.Steps) - 1; at >= 0 && !r.isDone(); at-- {
		if at >= len(r.best.Steps) {
			continue
		}
		for arg := len(r.best.Steps[at].Args) - 1; arg >= 0; arg-- {
			for _, plain := range reducedArgs(r.best.Steps[at].Args[arg]) {
				args := slices.Clone(r.best.Steps[at].Args)
				args = slices.Replace(args, arg, arg+1, plain...)
				if r.replaceStep(at, args, r.best.Steps[at].Input) || at >= len(r.best.Steps) || arg >= len(r.best.Steps[at].Args) {
					break
				}
			}
			if at >= len(r.best.Steps) || arg > len(r.best.Steps[at].Args) {
				break
			}
		}
	}
}

func (r *reducer) replaceStep(at int, args []scenario.Arg, input string) bool {
	steps := slices.Clone(r.best.Steps)
	steps[at] = scenario.Step{Verb: steps[at].Verb, Args: args, Input: input}
	return r.tryReplace(steps)
}

// reducedArgs returns replacements, shortest first.
func reducedArgs(a scenario.Arg) [][]scenario.Arg {
	combinations := [][]scenario.Arg{{}}
	if len(a.Values) == 0 {
		for _, text := range roundValues(a.Key) {
			combinations = append(combinations, []scenario.Arg{{Key: text}})
		}
		return combinations
	}
	if len(a.Values) > 1 {
		for i := range a.Values {
			combinations = append(combinations, []scenario.Arg{{Key: a.Key, Values: slices.Delete(slices.Clone(a.Values), i, i+1)}})
		}
		return combinations
	}
	for _, text := range roundValues(a.Values[0]) {
		combinations = append(combinations, []scenario.Arg{{Key: a.Key, Values: []string{text}}})
	}
	return combinations
}

func roundValues(text string) []string {
	var values []string
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		for _, unit := range []time.Duration{time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond} {
			for _, near := range []time.Duration{d.Truncate(unit), d.Truncate(unit) + unit} {
				if short := formatDuration(near); near > 0 && len(short) < len(text) {
					values = append(values, short)
				}
			}
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n > 1 && len(text) < 3 {
		values = append(values, "1")
	}
	return values
}

// formatDuration returns 2m, not 2m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	text = strings.TrimSuffix(text, "0s")
	if text == "" || !strings.HasSuffix(text, "m") {
		return d.String()
	}
	return text
}
