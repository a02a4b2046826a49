// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"weir.dev/weir/lab/scenario"
)

// Effort limits shrinking by runs and by real time.
type Effort struct {
	Plays int
	Time  time.Duration
}

// shrinking is the shortest failing script so far and the remaining effort.
type shrinking struct {
	best  Outcome
	plays int
	until time.Time
}

// Shrink returns the shortest schedule found that fails the same check, and the number of runs: it
// removes steps, then lines of the world, then simplifies arguments.
func Shrink(failed Outcome, effort Effort) (shortest Outcome, plays int) {
	s := &shrinking{best: failed, until: time.Now().Add(effort.Time)}
	s.plays = effort.Plays
	for before := -1; before != size(s.best.Steps) && !s.spent(); {
		before = size(s.best.Steps)
		s.dropSteps()
		s.mergeClocks()
		s.dropLines()
		s.plainArgs()
	}
	return s.best, effort.Plays - s.plays
}

func size(steps []scenario.Step) int {
	n := 0
	for _, s := range steps {
		n += len(s.String())
	}
	return n
}

func (s *shrinking) spent() bool { return s.plays <= 0 || time.Now().After(s.until) }

// try runs steps and keeps them if they fail the same check.
func (s *shrinking) try(steps []scenario.Step) bool {
	if s.spent() {
		return false
	}
	s.plays--
	o := Play(steps)
	if o.kind() != s.best.kind() || o.Steps[0].Verb != "cluster" || size(o.Steps) > size(s.best.Steps) {
		return false
	}
	s.best = o
	return true
}

// dropSteps removes as many steps as possible, large pieces first. The first step creates the world
// and is kept.
func (s *shrinking) dropSteps() {
	for piece := max(1, len(s.best.Steps)/2); piece >= 1; piece /= 2 {
		for at := len(s.best.Steps) - piece; at >= 1 && !s.spent(); at -= piece {
			if at+piece > len(s.best.Steps) {
				continue // shorter by now
			}
			s.try(slices.Delete(slices.Clone(s.best.Steps), at, at+piece))
		}
	}
}

// mergeClocks merges consecutive clock steps.
func (s *shrinking) mergeClocks() {
	for at := len(s.best.Steps) - 2; at >= 1 && !s.spent(); at-- {
		if at+1 >= len(s.best.Steps) {
			continue
		}
		first, ok := passes(s.best.Steps[at])
		second, too := passes(s.best.Steps[at+1])
		if ok && too {
			steps := slices.Delete(slices.Clone(s.best.Steps), at, at+1)
			steps[at] = clock(first + second)
			s.try(steps)
		}
	}
}

func passes(step scenario.Step) (time.Duration, bool) {
	if step.Verb != "clock" || len(step.Args) != 1 {
		return 0, false
	}
	d, err := time.ParseDuration(step.Args[0].Key)
	return d, err == nil
}

func clock(d time.Duration) scenario.Step {
	return scenario.Step{Verb: "clock", Args: []scenario.Arg{{Key: d.String()}}}
}

// dropLines removes lines of the world that no other line needs.
func (s *shrinking) dropLines() {
	for at := range s.best.Steps {
		for line := strings.Count(s.best.Steps[min(at, len(s.best.Steps)-1)].Input, "\n"); line >= 0 && !s.spent(); line-- {
			if at >= len(s.best.Steps) || s.best.Steps[at].Input == "" {
				break
			}
			lines := strings.Split(s.best.Steps[at].Input, "\n")
			if line < len(lines) {
				s.replace(at, s.best.Steps[at].Args, strings.Join(slices.Delete(lines, line, line+1), "\n"))
			}
		}
	}
}

// plainArgs removes arguments, or simplifies them: lists to one value, durations and numbers to
// round ones.
func (s *shrinking) plainArgs() {
	for at := len(s.best.Steps) - 1; at >= 0 && !s.spent(); at-- {
		if at >= len(s.best.Steps) {
			continue
		}
		for arg := len(s.best.Steps[at].Args) - 1; arg >= 0; arg-- {
			for _, plain := range plainer(s.best.Steps[at].Args[arg]) {
				args := slices.Clone(s.best.Steps[at].Args)
				args = slices.Replace(args, arg, arg+1, plain...)
				if s.replace(at, args, s.best.Steps[at].Input) || at >= len(s.best.Steps) || arg >= len(s.best.Steps[at].Args) {
					break
				}
			}
			if at >= len(s.best.Steps) || arg > len(s.best.Steps[at].Args) {
				break
			}
		}
	}
}

func (s *shrinking) replace(at int, args []scenario.Arg, input string) bool {
	steps := slices.Clone(s.best.Steps)
	steps[at] = scenario.Step{Verb: steps[at].Verb, Args: args, Input: input}
	return s.try(steps)
}

// plainer returns replacements of an argument, shortest first, starting with none.
func plainer(a scenario.Arg) [][]scenario.Arg {
	all := [][]scenario.Arg{{}}
	if len(a.Values) == 0 {
		for _, text := range rounder(a.Key) {
			all = append(all, []scenario.Arg{{Key: text}})
		}
		return all
	}
	if len(a.Values) > 1 {
		for i := range a.Values {
			all = append(all, []scenario.Arg{{Key: a.Key, Values: slices.Delete(slices.Clone(a.Values), i, i+1)}})
		}
		return all
	}
	for _, text := range rounder(a.Values[0]) {
		all = append(all, []scenario.Arg{{Key: a.Key, Values: []string{text}}})
	}
	return all
}

// rounder returns shorter notations of nearby numbers and durations.
func rounder(text string) []string {
	var all []string
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		for _, unit := range []time.Duration{time.Minute, 10 * time.Second, time.Second, 100 * time.Millisecond} {
			for _, near := range []time.Duration{d.Truncate(unit), d.Truncate(unit) + unit} {
				if short := spell(near); near > 0 && len(short) < len(text) {
					all = append(all, short)
				}
			}
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n > 1 && len(text) < 3 {
		all = append(all, "1")
	}
	return all
}

// spell formats a duration without zero seconds: 2m, not 2m0s.
func spell(d time.Duration) string {
	text := d.String()
	text = strings.TrimSuffix(text, "0s")
	if text == "" || !strings.HasSuffix(text, "m") {
		return d.String()
	}
	return text
}
