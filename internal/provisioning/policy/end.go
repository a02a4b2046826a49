// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"weir.dev/weir/internal/ratelimit"
)

// FinishAttempt returns the state after the running attempt. reason is the text of the failure.
func (s State) FinishAttempt(o Outcome, in Input, reason string, now time.Time) (State, []Event) {
	s.StartedAt = time.Time{}
	s.Since, s.EndedAt = now, now
	if o.NotBefore.After(now) {
		s.NotBefore = o.NotBefore
		if latest := now.Add(ratelimit.MaxRetryAfter); s.NotBefore.After(latest) {
			s.NotBefore = latest
		}
	}
	which := fmt.Sprintf("attempt %d", s.Attempts)
	switch {
	case o.Result == ResultSucceeded:
		s.Phase = Succeeded
		s.Cancelled = s.Cancelled && s.SpecDigest != in.SpecDigest // a cancellation holds for a changed spec
		return s, []Event{{Reason: ReasonSucceeded, Message: fmt.Sprintf("provisioned by %s", which)}}
	case s.SpecDigest != in.SpecDigest: // the spec changed: start over
		s.Phase = Waiting
		return s, []Event{{true, ReasonRetrying, fmt.Sprintf("%s failed: %s; what is wanted has changed since it began, and is tried now", which, reason)}}
	case o.Result == ResultInvalid:
		s.Phase = Failed
		return s, []Event{{true, ReasonFailed, fmt.Sprintf("%s failed, and a retry cannot help: %s", which, reason)}}
	case s.Cancelled:
		s.Phase = Cancelled
		return s, []Event{{true, ReasonCancelled, fmt.Sprintf("%s failed: %s; no other follows, for they were cancelled", which, reason)}}
	case s.Attempts > in.Policy.Retries:
		s.Phase = Failed
		return s, []Event{{true, ReasonFailed, fmt.Sprintf("given up after %s, the last of which failed: %s", attemptCount(s.Attempts), reason)}}
	case in.Policy.Horizon > 0 && s.TotalWait >= in.Policy.Horizon:
		s.Phase = Failed
		return s, []Event{{true, ReasonFailed, fmt.Sprintf("given up after %s and %s of waiting: %s", attemptCount(s.Attempts), s.TotalWait, reason)}}
	}
	s.Phase = Waiting
	return s, []Event{{true, ReasonRetrying, fmt.Sprintf("%s of %d failed: %s; the next begins at %s",
		which, in.Policy.Retries+1, reason, s.NextAttemptAt(in.Policy).UTC().Format(time.RFC3339))}}
}
