// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"time"

	"weir.dev/weir/internal/humanize"
)

// NextAction returns the next action, and the state to record first.
func (s State) NextAction(in Input, now time.Time) (State, Decision) {
	var d Decision
	s, d.Events = s.handleRequests(in, now)
	if s.Phase != Running && s.SpecDigest != in.SpecDigest {
		s = s.startOver(in.SpecDigest, now)
	}
	switch {
	case s.Phase == Running && in.AtWork:
		d.Action = NoAction
	case s.Phase == Running:
		// The attempt resumes with its remaining time, which bounds how often it can crash its
		// process.
		remaining := in.Policy.AttemptTimeout - max(0, now.Sub(s.StartedAt))
		if remaining > 0 && in.Busy {
			d.Action = NoAction
			return s, d
		}
		if remaining > 0 {
			d.Action, d.At = ResumeAttempt, now.Add(remaining)
			return s, d
		}
		var events []Event
		s, events = s.FinishAttempt(Outcome{Result: ResultFailed}, in, timeoutMessage, now)
		var then Decision
		s, then = s.NextAction(in, now)
		then.Events, then.TimeoutReason = append(append(d.Events, events...), then.Events...), timeoutMessage
		return s, then
	case s.Phase == Waiting && s.Cancelled:
		s.Phase, d.Action = Cancelled, NoAction
	case s.Phase == Waiting:
		return s.startIfDue(in, now, d)
	default:
		d.Action = NoAction
	}
	return s, d
}

const timeoutMessage = "it was interrupted, and its time was over"

// NextInvalid decides while the policy or the step order is invalid: nothing starts, and an abandoned
// attempt ends by the built-in timeout.
func (s State) NextInvalid(in Input, now time.Time) (State, Decision) {
	if s.Phase != Running || in.AtWork {
		return s, Decision{Action: NoAction}
	}
	if over := s.StartedAt.Add(DefaultPolicy().AttemptTimeout); now.Before(over) {
		return s, Decision{Action: WaitUntil, At: over}
	}
	s.Phase, s.StartedAt, s.Since = Waiting, time.Time{}, now
	if s.Cancelled {
		s.Phase = Cancelled
	}
	return s, Decision{Action: NoAction, TimeoutReason: timeoutMessage, Events: []Event{{true, ReasonRetrying,
		fmt.Sprintf("attempt %d failed: %s; no other follows while its condition Accepted is False", s.Attempts, timeoutMessage)}}}
}

func targetOf(digest string) string {
	target, _, _ := strings.Cut(digest, "/")
	if target == digest {
		return ""
	}
	return target
}

// startOver starts over for a changed spec, at once or at NotBefore. A cancellation still holds.
func (s State) startOver(digest string, now time.Time) State {
	if old := targetOf(s.SpecDigest); old != "" && old != targetOf(digest) {
		s.NotBefore = time.Time{} // sent by another server
	}
	s.SpecDigest, s.Attempts, s.TotalWait = digest, 0, 0
	s.Phase, s.Since, s.RetryRequested = Waiting, now, true
	if s.Cancelled {
		s.Phase, s.RetryRequested = Cancelled, false
	}
	return s
}

func (s State) startIfDue(in Input, now time.Time, d Decision) (State, Decision) {
	if now.Before(s.Since) { // the clock was set back: keep the remaining wait
		if !s.NotBefore.IsZero() {
			s.NotBefore = s.NotBefore.Add(now.Sub(s.Since))
		}
		s.Since = now
	}
	if !s.RetryRequested && s.Attempts > in.Policy.Retries {
		s.Phase, d.Action = Failed, NoAction
		d.Events = append(d.Events, Event{true, ReasonFailed, fmt.Sprintf("given up after %s: the policy has come to allow no more", attemptCount(s.Attempts))})
		return s, d
	}
	due, sooner := s.NextAttemptAt(in.Policy), s.hasRecovered(in)
	at := due
	if sooner {
		at = s.afterMinimum(in.Policy, s.notBefore(s.Since))
	}
	if now.Before(at) {
		d.Action, d.At = WaitUntil, at
		return s, d
	}
	if in.Busy {
		d.Action = NoAction
		return s, d
	}
	if sooner = sooner && now.Before(due); sooner { // a horizon must not allow additional attempts
		s.TotalWait += s.currentWait(in.Policy)
		d.Events = append(d.Events, Event{Reason: ReasonReachable, Message: fmt.Sprintf("the target responds again: attempt %d starts now, %s early", s.Attempts+1, due.Sub(now).Round(time.Second))})
	} else {
		s.TotalWait += s.elapsedWait(in.Policy, now)
	}
	s.Phase, s.StartedAt = Running, now
	s.Attempts++
	s.Number++
	s.RetryRequested, s.Since, s.NotBefore = false, time.Time{}, time.Time{}
	d.Action, d.At, d.Repeat = StartAttempt, now.Add(in.Policy.AttemptTimeout), s.Repeat
	s.Repeat = false
	return s, d
}

// NextAttemptAt returns when the next attempt starts.
func (s State) NextAttemptAt(p Policy) time.Time {
	at := s.Since.Add(s.currentWait(p))
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

func (s State) currentWait(p Policy) time.Duration {
	if s.RetryRequested {
		return 0
	}
	wait := p.RetryInterval(s.Attempts)
	if p.Horizon > 0 {
		wait = min(wait, max(0, p.Horizon-s.TotalWait))
	}
	return wait
}

func (s State) elapsedWait(p Policy, now time.Time) time.Duration {
	return min(max(0, now.Sub(s.Since)), s.currentWait(p))
}

func attemptCount(n int) string { return humanize.FormatCount(n, "attempt") }
