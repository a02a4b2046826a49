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

// maxRetries is the default of a world, as in the scenario tests.
const maxRetries = 3

// Outcome is the result of a schedule.
type Outcome struct {
	// Steps are the executed steps, ending with the failed one.
	Steps []scenario.Step
	// Traces are the traces of Steps.
	Traces []string
	// Left are the skipped steps.
	Left []Left
	// Check is the failed check, "expect", or "lock-up" after a panic or deadlock; empty if all
	// held. How has details.
	Check, How string
	// Print is a hash of the traces.
	Print uint64
}

// Left is a skipped step: its index in the schedule, and the reason.
type Left struct {
	At  int
	Why string
}

// Failed reports whether a check failed.
func (o Outcome) Failed() bool { return o.Check != "" }

// kind classifies a failure by check and expectation.
func (o Outcome) kind() string {
	for _, what := range []string{"not level: it does not exist", "not level", "writes in", "waits"} {
		if o.Check == "expect" && strings.Contains(o.How, what) {
			return o.Check + " " + what
		}
	}
	return o.Check
}

// LockUp is the check for panics and deadlocks.
const LockUp = "lock-up"

// Play runs the steps on a new stage in a new bubble. It skips steps that name missing objects.
func Play(steps []scenario.Step) Outcome {
	var o Outcome
	if trouble := bubble(func() { o.play(steps) }); trouble != "" {
		if o.Check == "" { // the abandoned bubble may still write to o
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

// note records the first failed check.
func (o *Outcome) note(err error) {
	if broken, ok := errors.AsType[*scenario.Broken](err); ok {
		o.Check, o.How = broken.Check, broken.How
	}
}
