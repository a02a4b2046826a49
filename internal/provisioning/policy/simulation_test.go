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

func (p *simulation) now() time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(p.passed + p.clock)
}

func (p *simulation) logf(format string, args ...any) {
	fmt.Fprintf(&p.out, "%-9s %s\n", span(p.passed), fmt.Sprintf(format, args...))
}

func span(d time.Duration) string { return d.Round(time.Second).String() }

func (p *simulation) input() Input {
	return Input{SpecDigest: p.job, Policy: p.policy, Requests: p.asked, AtWork: p.working}
}

func (p *simulation) record(s State, told []Event) {
	if s != p.state {
		p.writes++
	}
	if s.Phase != p.state.Phase && s.Phase != Running && s.Phase != Waiting {
		p.logf("%s", s.Phase)
	}
	p.state = s
	for _, w := range told {
		p.logf("event %s: %s", w.Reason, w.Message)
	}
}

// runStep carries out the next action and returns when to call it again; false means never.
func (p *simulation) runStep() (time.Duration, bool) {
	s, d := p.state.NextAction(p.input(), p.now())
	p.record(s, d.Events)
	switch d.Action {
	case StartAttempt, ResumeAttempt:
		remaining := min(p.takes, d.At.Sub(p.now()))
		p.working, p.ends = true, p.passed+remaining
		if d.Action == StartAttempt {
			p.begins = append(p.begins, p.passed)
			p.early = p.early || p.passed < p.until
			p.tooEarly = p.tooEarly || p.passed < p.after
		}
		p.logf("%s attempt %d", d.Action, p.state.Attempts)
		return p.ends, true
	case WaitUntil:
		return p.passed + d.At.Sub(p.now()), true
	}
	return p.ends, p.working
}

func (p *simulation) advanceTime(d time.Duration) {
	for end := p.passed + d; ; {
		at, more := p.runStep()
		if !more || at > end {
			p.passed = end
			return
		}
		p.passed = max(p.passed, at)
		if p.working && p.passed >= p.ends {
			p.working = false
			o := Outcome{Result: p.outcome}
			if p.server > 0 && p.outcome != ResultSucceeded {
				o.NotBefore = p.now().Add(p.server)
				p.until = p.passed + p.server
			}
			p.after = p.passed + p.policy.MinInterval
			p.record(p.state.FinishAttempt(o, p.input(), "no route", p.now()))
		}
	}
}

func (p *simulation) setRequest(annotation *string) {
	p.asks++
	*annotation = p.now().Add(time.Duration(p.asks)).Format(time.RFC3339Nano)
	p.runStep()
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

func (p *simulation) setPolicy(t *testing.T, d *datadriven.TestData) {
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
	if p.policy, _, err = ResolvePolicy(Layer{From: "test", Raw: w}); err != nil {
		t.Fatal(err)
	}
}

func (p *simulation) setLink(t *testing.T, d *datadriven.TestData) {
	p.server = 0
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "up":
			p.outcome = ResultSucceeded
		case "down":
			p.outcome = ResultFailed
		case "invalid":
			p.outcome = ResultInvalid
		case "takes":
			p.takes = parse(t, a.Vals[0])
		case "retry-after":
			p.server = parse(t, a.Vals[0])
		}
	}
}
