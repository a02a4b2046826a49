// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"testing/synctest"

	"weir.dev/weir/lab/scenario"
)

// maxRetries is what a world has that does not say otherwise, as in the scenarios' tests.
const maxRetries = 3

// Outcome is what became of a schedule.
type Outcome struct {
	// Steps are those that could be made. The last one is the one that failed.
	Steps []scenario.Step
	// Traces is what happened at each of them.
	Traces []string
	// Left are the steps that could not be made.
	Left []Left
	// Check is the name of the check that failed, or "expect", or "lock-up" for a
	// process that panicked or stands still; empty if all held. How says more.
	Check, How string
	// Print is a fingerprint of the traces.
	Print uint64
}

// Left is a step that could not be made: which of the schedule, counted from 0, and why.
type Left struct {
	At  int
	Why string
}

// Failed reports whether a check did not hold.
func (o Outcome) Failed() bool { return o.Check != "" }

// kind tells failures apart: the check, and what was expected.
func (o Outcome) kind() string {
	for _, what := range []string{"not level: it does not exist", "not level", "writes in", "waits"} {
		if o.Check == "expect" && strings.Contains(o.How, what) {
			return o.Check + " " + what
		}
	}
	return o.Check
}

// LockUp is the check that a process neither panics nor stands still.
const LockUp = "lock-up"

// Play makes the steps on a new stage, in a bubble of its own. A step that cannot be
// made, because it names what is not there, is left out.
func Play(steps []scenario.Step) Outcome {
	var o Outcome
	if trouble := bubble(func() { o.play(steps) }); trouble != "" {
		if o.Check == "" { // the bubble may still be at work, so nothing is taken from it
			o = Outcome{Steps: steps, Check: LockUp, How: trouble}
		}
		return o
	}
	h := fnv.New64a()
	for i, s := range o.Steps {
		_, _ = h.Write([]byte(s.String() + "\n" + o.Traces[i])) // never fails
	}
	o.Print = h.Sum64()
	return o
}

func (o *Outcome) play(steps []scenario.Step) {
	stage := scenario.New(scenario.Options{Settle: synctest.Wait, MaxRetries: maxRetries})
	defer func() {
		if err := stage.Close(); !o.Failed() {
			o.note(err)
		}
	}()
	for i, step := range steps {
		trace, err := stage.Do(step)
		o.note(err)
		if err != nil && !o.Failed() {
			line, _, _ := strings.Cut(step.String(), "\n")
			o.Left = append(o.Left, Left{i, fmt.Sprintf("%q: %v", line, err)})
			continue
		}
		o.Steps, o.Traces = append(o.Steps, step), append(o.Traces, trace)
		if o.Failed() {
			return
		}
	}
}

// note keeps the first check that is broken in err.
func (o *Outcome) note(err error) {
	if broken, ok := errors.AsType[*scenario.Broken](err); ok {
		o.Check, o.How = broken.Check, broken.How
	}
}
