// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"fmt"
	"time"

	"weir.dev/weir/internal/backoff"
)

// End returns the state after the running attempt. why is the failure as text.
func (s State) End(o Outcome, in Input, why string, now time.Time) (State, []Word) {
	s.StartedAt = time.Time{}
	s.Since, s.EndedAt = now, now
	if o.NotBefore.After(now) {
		s.NotBefore = o.NotBefore
		if latest := now.Add(backoff.MaxRetryAfter); s.NotBefore.After(latest) {
			s.NotBefore = latest
		}
	}
	which := fmt.Sprintf("attempt %d", s.Begun)
	switch {
	case o.Result == DidSucceed:
		s.Phase = Succeeded
		s.Cancelled = s.Cancelled && s.Job != in.Job // a cancellation holds for a changed spec
		return s, []Word{{Reason: ReasonSucceeded, Text: fmt.Sprintf("provisioned by %s", which)}}
	case s.Job != in.Job: // the spec changed: start over
		s.Phase = Waiting
		return s, []Word{{true, ReasonRetrying, fmt.Sprintf("%s failed: %s; what is wanted has changed since it began, and is tried now", which, why)}}
	case o.Result == IsInvalid:
		s.Phase = Failed
		return s, []Word{{true, ReasonFailed, fmt.Sprintf("%s failed, and no other can mend it: %s", which, why)}}
	case s.Cancelled:
		s.Phase = Cancelled
		return s, []Word{{true, ReasonCancelled, fmt.Sprintf("%s failed: %s; no other follows, for they were cancelled", which, why)}}
	case s.Begun > in.Policy.Retries:
		s.Phase = Failed
		return s, []Word{{true, ReasonFailed, fmt.Sprintf("given up after %s, the last of which failed: %s", attempts(s.Begun), why)}}
	case in.Policy.Horizon > 0 && s.Waited >= in.Policy.Horizon:
		s.Phase = Failed
		return s, []Word{{true, ReasonFailed, fmt.Sprintf("given up after %s and %s of waiting: %s", attempts(s.Begun), s.Waited, why)}}
	}
	s.Phase = Waiting
	return s, []Word{{true, ReasonRetrying, fmt.Sprintf("%s of %d failed: %s; the next begins at %s",
		which, in.Policy.Retries+1, why, s.Due(in.Policy).UTC().Format(time.RFC3339))}}
}
