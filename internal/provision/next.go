// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/internal/words"
)

// Next returns the next action, and the state to record first.
func (s State) Next(in Input, now time.Time) (State, Decision) {
	var d Decision
	s, d.Told = s.hear(in, now)
	if s.Phase != Running && s.Job != in.Job {
		s = s.beginAnew(in.Job, now)
	}
	switch {
	case s.Phase == Running && in.AtWork:
		d.Do = Rest
	case s.Phase == Running:
		// The attempt resumes with its remaining time, which bounds how often it can crash its
		// process.
		left := in.Policy.AttemptTimeout - max(0, now.Sub(s.StartedAt))
		if left > 0 && in.Busy {
			d.Do = Rest
			return s, d
		}
		if left > 0 {
			d.Do, d.At = Resume, now.Add(left)
			return s, d
		}
		var events []Word
		s, events = s.End(Outcome{Result: DidFail}, in, lapsed, now)
		var then Decision
		s, then = s.Next(in, now)
		then.Told, then.Lapsed = append(append(d.Told, events...), then.Told...), lapsed
		return s, then
	case s.Phase == Waiting && s.Cancelled:
		s.Phase, d.Do = Cancelled, Rest
	case s.Phase == Waiting:
		return s.await(in, now, d)
	default:
		d.Do = Rest
	}
	return s, d
}

const lapsed = "it was interrupted, and its time was over"

// Lapse decides while the policy or the step order is invalid: nothing starts, and an abandoned
// attempt ends by the built-in timeout.
func (s State) Lapse(in Input, now time.Time) (State, Decision) {
	if s.Phase != Running || in.AtWork {
		return s, Decision{Do: Rest}
	}
	if over := s.StartedAt.Add(BuiltIn().AttemptTimeout); now.Before(over) {
		return s, Decision{Do: Await, At: over}
	}
	s.Phase, s.StartedAt, s.Since = Waiting, time.Time{}, now
	if s.Cancelled {
		s.Phase = Cancelled
	}
	return s, Decision{Do: Rest, Lapsed: lapsed, Told: []Word{{true, ReasonRetrying,
		fmt.Sprintf("attempt %d failed: %s; no other follows while its condition Accepted is False", s.Begun, lapsed)}}}
}

func targetOf(job string) string {
	target, _, _ := strings.Cut(job, "/")
	if target == job {
		return ""
	}
	return target
}

// beginAnew starts over for a new job, at once or at NotBefore. A cancellation still holds.
func (s State) beginAnew(job string, now time.Time) State {
	if was := targetOf(s.Job); was != "" && was != targetOf(job) {
		s.NotBefore = time.Time{} // sent by another server
	}
	s.Job, s.Begun, s.Waited = job, 0, 0
	s.Phase, s.Since, s.Asked = Waiting, now, true
	if s.Cancelled {
		s.Phase, s.Asked = Cancelled, false
	}
	return s
}

func (s State) await(in Input, now time.Time, d Decision) (State, Decision) {
	if now.Before(s.Since) { // the clock was set back: keep the remaining wait
		if !s.NotBefore.IsZero() {
			s.NotBefore = s.NotBefore.Add(now.Sub(s.Since))
		}
		s.Since = now
	}
	if !s.Asked && s.Begun > in.Policy.Retries {
		s.Phase, d.Do = Failed, Rest
		d.Told = append(d.Told, Word{true, ReasonFailed, fmt.Sprintf("given up after %s: the policy has come to allow no more", attempts(s.Begun))})
		return s, d
	}
	due, sooner := s.Due(in.Policy), s.answers(in)
	at := due
	if sooner {
		at = s.afterMinimum(in.Policy, s.later(s.Since))
	}
	if now.Before(at) {
		d.Do, d.At = Await, at
		return s, d
	}
	if in.Busy {
		d.Do = Rest
		return s, d
	}
	if sooner = sooner && now.Before(due); sooner { // a horizon must not allow additional attempts
		s.Waited += s.wait(in.Policy)
		d.Told = append(d.Told, Word{Reason: ReasonAnswers, Text: fmt.Sprintf("the target answers again: attempt %d begins now, %s before its time", s.Begun+1, due.Sub(now).Round(time.Second))})
	} else {
		s.Waited += s.waitedSince(in.Policy, now)
	}
	s.Phase, s.StartedAt = Running, now
	s.Begun++
	s.Number++
	s.Asked, s.Since, s.NotBefore = false, time.Time{}, time.Time{}
	d.Do, d.At, d.Anew = Begin, now.Add(in.Policy.AttemptTimeout), s.Anew
	s.Anew = false
	return s, d
}

// Due returns when the next attempt starts.
func (s State) Due(p Policy) time.Time {
	at := s.Since.Add(s.wait(p))
	if s.NotBefore.After(at) {
		at = s.NotBefore
	}
	return s.afterMinimum(p, at)
}

// afterMinimum delays at until MinInterval has passed since the last attempt. An EndedAt after
// Since results from a clock set back.
func (s State) afterMinimum(p Policy, at time.Time) time.Time {
	if first := s.EndedAt.Add(p.MinInterval); !s.EndedAt.IsZero() && !s.EndedAt.After(s.Since) && first.After(at) {
		return first
	}
	return at
}

func (s State) wait(p Policy) time.Duration {
	if s.Asked {
		return 0
	}
	wait := p.Wait(s.Begun)
	if p.Horizon > 0 {
		wait = min(wait, max(0, p.Horizon-s.Waited))
	}
	return wait
}

func (s State) waitedSince(p Policy, now time.Time) time.Duration {
	return min(max(0, now.Sub(s.Since)), s.wait(p))
}

func attempts(n int) string { return words.Count(n, "attempt") }
