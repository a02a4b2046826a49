// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
)

type simulation struct {
	state  State
	policy Policy
	job    string
	asked  Requests
	asks   int

	passed time.Duration // true time
	clock  time.Duration // offset of the machine's clock

	takes   time.Duration // duration of an attempt
	outcome Result
	server  time.Duration // Retry-After of a rejection

	working bool
	ends    time.Duration
	begins  []time.Duration
	// until is the latest Retry-After, in true time; early is set if an attempt started before it.
	until time.Duration
	early bool
	// after is the end of the minimum interval; tooEarly is set if an attempt started before it.
	after    time.Duration
	tooEarly bool
	writes   int
	out      strings.Builder
}

func newSimulation() *simulation {
	return &simulation{policy: DefaultPolicy(), job: "a", takes: time.Minute, outcome: ResultFailed}
}

func (sim *simulation) now() time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(sim.passed + sim.clock)
}

func (sim *simulation) logf(format string, args ...any) {
	fmt.Fprintf(&sim.out, "%-9s %s\n", span(sim.passed), fmt.Sprintf(format, args...))
}

func span(d time.Duration) string { return d.Round(time.Second).String() }

func (sim *simulation) input() Input {
	return Input{SpecDigest: sim.job, Policy: sim.policy, Requests: sim.asked, AtWork: sim.working}
}

func (sim *simulation) record(s State, reported []Event) {
	if s != sim.state {
		sim.writes++
	}
	if s.Phase != sim.state.Phase && s.Phase != Running && s.Phase != Waiting {
		sim.logf("%s", s.Phase)
	}
	sim.state = s
	for _, w := range reported {
		sim.logf("event %s: %s", w.Reason, w.Message)
	}
}

// runStep carries out the next action and returns when to call it again; false means never.
func (sim *simulation) runStep() (time.Duration, bool) {
	s, d := sim.state.NextAction(sim.input(), sim.now())
	sim.record(s, d.Events)
	switch d.Action {
	case StartAttempt, ResumeAttempt:
		remaining := min(sim.takes, d.At.Sub(sim.now()))
		sim.working, sim.ends = true, sim.passed+remaining
		if d.Action == StartAttempt {
			sim.begins = append(sim.begins, sim.passed)
			sim.early = sim.early || sim.passed < sim.until
			sim.tooEarly = sim.tooEarly || sim.passed < sim.after
		}
		sim.logf("%s attempt %d", d.Action, sim.state.Attempts)
		return sim.ends, true
	case WaitUntil:
		return sim.passed + d.At.Sub(sim.now()), true
	}
	return sim.ends, sim.working
}

func (sim *simulation) advanceTime(d time.Duration) {
	for end := sim.passed + d; ; {
		at, more := sim.runStep()
		if !more || at > end {
			sim.passed = end
			return
		}
		sim.passed = max(sim.passed, at)
		if sim.working && sim.passed >= sim.ends {
			sim.working = false
			o := Outcome{Result: sim.outcome}
			if sim.server > 0 && sim.outcome != ResultSucceeded {
				o.NotBefore = sim.now().Add(sim.server)
				sim.until = sim.passed + sim.server
			}
			sim.after = sim.passed + sim.policy.MinInterval
			sim.record(sim.state.FinishAttempt(o, sim.input(), "no route", sim.now()))
		}
	}
}

func (sim *simulation) setRequest(annotation *string) {
	sim.asks++
	*annotation = sim.now().Add(time.Duration(sim.asks)).Format(time.RFC3339Nano)
	sim.runStep()
}

// TestPlays runs the scenarios in testdata, one per promise.
func TestPlays(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		if strings.Contains(file, "rapid") {
			return
		}
		p := newSimulation()
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			p.out.Reset()
			switch d.Cmd {
			case "policy":
				p.setPolicy(t, d)
			case "link":
				p.setLink(t, d)
			case "pass":
				p.advanceTime(parse(t, d.CmdArgs[0].Key))
			case "cancel":
				p.setRequest(&p.asked.Cancel)
			case "retry-now":
				p.setRequest(&p.asked.RetryNow)
			case "reset":
				p.setRequest(&p.asked.Reset)
			case "want":
				p.job = d.CmdArgs[0].Key
				p.runStep()
			case "process-dies":
				p.working = false
			case "clock":
				p.clock += parse(t, d.CmdArgs[0].Key)
			default:
				t.Fatalf("%s: no such command", d.Cmd)
			}
			return p.out.String()
		})
	})
}

func parse(t *testing.T, text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (sim *simulation) setPolicy(t *testing.T, d *datadriven.TestData) {
	var w RawPolicy
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "retries":
			var n int32
			if _, err := fmt.Sscan(a.Vals[0], &n); err != nil {
				t.Fatal(err)
			}
			w.Retries = &n
		case "initial":
			w.InitialInterval = a.Vals[0]
		case "factor":
			w.Factor = a.Vals[0]
		case "max":
			w.MaxInterval = a.Vals[0]
		case "horizon":
			w.Horizon = a.Vals[0]
		case "attempt":
			w.AttemptTimeout = a.Vals[0]
		}
	}
	var err error
	if sim.policy, _, err = ResolvePolicy(Layer{From: "test", Raw: w}); err != nil {
		t.Fatal(err)
	}
}

func (sim *simulation) setLink(t *testing.T, d *datadriven.TestData) {
	sim.server = 0
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "up":
			sim.outcome = ResultSucceeded
		case "down":
			sim.outcome = ResultFailed
		case "invalid":
			sim.outcome = ResultInvalid
		case "takes":
			sim.takes = parse(t, a.Vals[0])
		case "retry-after":
			sim.server = parse(t, a.Vals[0])
		}
	}
}
