// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

type failingProvision struct {
	state        State
	in           Input
	now          time.Time
	random       func() float64
	refuses      func() time.Duration
	up           func() bool
	begins, made []time.Time
	named        time.Time
}

// runUntilIdle returns false if an attempt or probe ignored NotBefore.
func (f *failingProvision) runUntilIdle(t *rapid.T, until time.Time, probes bool) {
	for {
		s, d := f.state.NextAction(f.in, f.now)
		f.state = s
		switch d.Action {
		case StartAttempt:
			if f.now.Before(f.named) {
				t.Fatalf("an attempt begins at %s, the server named %s", f.now, f.named)
			}
			f.begins = append(f.begins, f.now)
			f.now = f.now.Add(time.Minute)
			o := Outcome{Result: ResultFailed}
			if after := f.refuses(); after > 0 {
				o.NotBefore = f.now.Add(after)
				f.named = o.NotBefore
			}
			f.state, _ = f.state.FinishAttempt(o, f.in, "no route", f.now)
			continue
		case NoAction:
			return
		}
		next := d.At
		if probes {
			k, at := f.state.NextProbe(f.in.Probes, f.in, f.random(), f.now)
			f.in.Probes = k
			if !at.IsZero() && at.Before(next) {
				if at.Before(f.named) {
					t.Fatalf("knocked at %s, the server named %s", at, f.named)
				}
				f.now = at
				f.made = append(f.made, at)
				f.in.Probes = f.state.RecordProbe(k, f.up(), f.in.Policy, f.random(), f.now)
				continue
			}
		}
		if next.After(until) {
			return
		}
		f.now = next
	}
}

// Probes cause no additional attempts, delay none, start none before NotBefore, and are at least a
// minute apart and at most 60 per wait.
func TestLawProbes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		p.Retries = rapid.IntRange(0, 20).Draw(t, "retries")
		p.Initial = time.Duration(rapid.IntRange(1, 7200).Draw(t, "initial")) * time.Second
		p.MaxInterval = p.Initial + time.Duration(rapid.IntRange(0, 100).Draw(t, "max"))*time.Hour
		p.Horizon = time.Duration(rapid.IntRange(0, 30).Draw(t, "horizon")) * time.Hour
		start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		after := rapid.SliceOfN(rapid.IntRange(-300, 300), 21, 21).Draw(t, "retry-after")
		single := func() *failingProvision {
			n := 0
			return &failingProvision{
				in: Input{SpecDigest: "a", Policy: p}, now: start,
				random:  func() float64 { return rapid.Float64Range(0, 1).Draw(t, "jitter") },
				up:      func() bool { return rapid.Bool().Draw(t, "up") },
				refuses: func() time.Duration { n++; return time.Duration(after[n-1]) * time.Minute },
			}
		}
		without, with := single(), single()
		until := start.Add(20000 * time.Hour)
		without.runUntilIdle(t, until, false)
		with.runUntilIdle(t, until, true)
		if len(with.begins) != len(without.begins) || with.state.Phase != without.state.Phase || with.state.TotalWait > without.state.TotalWait {
			t.Fatalf("with probes %d attempts, %+v; without %d, %+v", len(with.begins), with.state, len(without.begins), without.state)
		}
		for i := range with.begins {
			if with.begins[i].After(without.begins[i]) {
				t.Fatalf("attempt %d begins at %s, without probes at %s", i+1, with.begins[i], without.begins[i])
			}
		}
		for i := 1; i < len(with.made); i++ {
			if between := with.made[i].Sub(with.made[i-1]); between < time.Minute {
				t.Fatalf("two probes within %s", between)
			}
		}
		if len(with.made) > maxProbes*p.Retries {
			t.Fatalf("%d probes in %d waits", len(with.made), p.Retries)
		}
	})
}

// When a target is probed, and when the next attempt starts earlier.
func TestProbes(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p := DefaultPolicy()
	p.Initial = time.Hour
	waiting := State{Phase: Waiting, SpecDigest: "a", Attempts: 1, Number: 7, Since: at}
	of := func(away, answered bool) ProbeState {
		return ProbeState{Number: 7, Since: at, Count: 2, Failed: away, Recovered: answered}
	}
	but := func(change func(*State)) State { s := waiting; change(&s); return s }
	for _, tt := range []struct {
		name   string
		state  State
		probes ProbeState
		knock  time.Duration // 0 means never
		begins bool
	}{
		{"a wait begins", waiting, ProbeState{}, 90 * time.Second, false},
		{"it is away", waiting, ProbeState{Number: 7, Since: at, Count: 2, Failed: true, Next: at.Add(5 * time.Minute)}, 5 * time.Minute, false},
		{"it answers from the beginning", waiting, of(false, false), 0, false},
		{"it answers again", waiting, of(true, true), 0, true},
		{"it answered in another wait", waiting, ProbeState{Number: 6, Since: at, Failed: true, Recovered: true}, 90 * time.Second, false},
		{"too often", waiting, ProbeState{Number: 7, Since: at, Count: maxProbes, Failed: true}, 0, false},
		{"cancelled", but(func(s *State) { s.Cancelled = true }), of(true, true), 0, false},
		{"somebody has asked, a server named a time", but(func(s *State) { s.RetryRequested, s.NotBefore = true, at.Add(time.Hour) }), of(true, true), 0, false},
		{"a server named a time", but(func(s *State) { s.NotBefore = at.Add(20 * time.Minute) }), ProbeState{}, 21*time.Minute + 30*time.Second, false},
		{"it answers, a server named a time", but(func(s *State) { s.NotBefore = at.Add(20 * time.Minute) }), of(true, true), 0, false},
		{"under way", but(func(s *State) { s.Phase, s.StartedAt = Running, at }), of(true, true), 0, false},
	} {
		in := Input{SpecDigest: "a", Policy: p, Probes: tt.probes, AtWork: tt.state.Phase == Running}
		_, when := tt.state.NextProbe(tt.probes, in, 1, at)
		if want := at.Add(tt.knock); tt.knock == 0 && !when.IsZero() || tt.knock > 0 && !when.Equal(want) {
			t.Errorf("%s: knock at %s, want after %s", tt.name, when, tt.knock)
		}
		if _, d := tt.state.NextAction(in, at); (d.Action == StartAttempt) != tt.begins {
			t.Errorf("%s: %s", tt.name, d.Action)
		}
	}
}
