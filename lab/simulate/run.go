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

// maxRetries is the scenario tests' default.
const maxRetries = 3

// Result is the result of a schedule.
type Result struct {
	// Steps executed, ending with the failed one.
	Steps   []scenario.Step
	Traces  []string
	Skipped []SkippedStep
	// Check is the failed check, "expect", or LockUp; empty if all held.
	Check, Detail string
	// TraceHash is a hash of the traces.
	TraceHash uint64
}

// SkippedStep is a skipped step.
type SkippedStep struct {
	Index  int
	Reason string
}

// HasFailed reports whether a check failed.
func (r Result) HasFailed() bool { return r.Check != "" }

func (r Result) failureKind() string {
	for _, kind := range []string{"not in sync: it does not exist", "not in sync", "writes in", "waits"} {
		if r.Check == "expect" && strings.Contains(r.Detail, kind) {
			return r.Check + " " + kind
		}
	}
	return r.Check
}

// LockUp is the check for panics and deadlocks.
const LockUp = "lock-up"

// RunSchedule runs the steps on a new stage. It skips steps that name missing objects.
func RunSchedule(steps []scenario.Step) Result {
	var o Result
	if failure := runInVirtualTime(func() { o.runSteps(steps) }); failure != "" {
		if o.Check == "" { // the abandoned bubble may still write to o
			o = Result{Steps: steps, Check: LockUp, Detail: failure}
		}
		return o
	}
	h := fnv.New64a()
	for i, s := range o.Steps {
		_, _ = h.Write([]byte(s.String() + "\n" + o.Traces[i])) // never fails
	}
	o.TraceHash = h.Sum64()
	return o
}

func (r *Result) runSteps(steps []scenario.Step) {
	stage := scenario.New(scenario.Options{Settle: synctest.Wait, MaxRetries: maxRetries})
	defer func() {
		if err := stage.Close(); !r.HasFailed() {
			r.recordFailure(err)
		}
	}()
	for i, step := range steps {
		trace, err := stage.Do(step)
		r.recordFailure(err)
		if err != nil && !r.HasFailed() {
			line, _, _ := strings.Cut(step.String(), "\n")
			r.Skipped = append(r.Skipped, SkippedStep{i, fmt.Sprintf("%q: %v", line, err)})
			continue
		}
		r.Steps, r.Traces = append(r.Steps, step), append(r.Traces, trace)
		if r.HasFailed() {
			return
		}
	}
}

func (r *Result) recordFailure(err error) {
	if broken, ok := errors.AsType[*scenario.CheckError](err); ok {
		r.Check, r.Detail = broken.Check, broken.How
	}
}
