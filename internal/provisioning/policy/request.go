// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// handleRequests handles new user requests in chronological order.
func (s State) handleRequests(in Input, now time.Time) (State, []Event) {
	type request struct {
		at, handled string
		answer      func(State, Input, time.Time) (State, Event)
	}
	requests := []request{ // at equal times, Cancel wins
		{in.Requests.Reset, s.HandledRequests.Reset, State.resetAttempts},
		{in.Requests.RetryNow, s.HandledRequests.RetryNow, State.retryNow},
		{in.Requests.Cancel, s.HandledRequests.Cancel, State.cancelAttempts},
	}
	slices.SortStableFunc(requests, func(a, b request) int { return cmp.Compare(requestTime(a.at), requestTime(b.at)) })
	var events []Event
	for _, r := range requests {
		if r.at == "" || r.at == r.handled {
			continue
		}
		var event Event
		if s, event = r.answer(s, in, now); event.Reason != "" {
			events = append(events, event)
		}
	}
	s.HandledRequests = in.Requests
	return s, events
}

func requestTime(at string) int64 {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return -1 << 63
	}
	return t.UnixNano()
}

// cancelAttempts does not stop a running attempt, which may succeed.
func (s State) cancelAttempts(in Input, _ time.Time) (State, Event) {
	if s.Cancelled || s.SpecDigest == in.SpecDigest && (s.Phase == Succeeded || s.Phase == Failed) {
		return s, Event{}
	}
	s.Cancelled = true
	if s.Phase == Running {
		return s, Event{Reason: ReasonCancelled, Message: "upcoming attempts are canceled; the current one continues"}
	}
	return s, Event{Reason: ReasonCancelled, Message: "upcoming attempts are cancelled"}
}

// retryNow skips Weir's own waiting, but not the server's Retry-After. After the last attempt it
// allows one more.
func (s State) retryNow(in Input, now time.Time) (State, Event) {
	s.Cancelled = false
	switch s.Phase {
	case Running:
		return s, Event{Reason: ReasonNothingToSkip, Message: "an attempt is under way already"}
	case "":
		return s, Event{}
	case Waiting:
		s.TotalWait += s.elapsedWait(in.Policy, now)
	case Succeeded:
		s.Attempts, s.TotalWait = 0, 0
	}
	s.Phase, s.Since, s.RetryRequested = Waiting, now, true
	if s.NotBefore.After(now) {
		return s, Event{Reason: ReasonRetryNow, Message: "the next attempt begins at " + s.NotBefore.UTC().Format(time.RFC3339) + ", because of the target's Retry-After"}
	}
	if due := s.NextAttemptAt(in.Policy); due.After(now) {
		return s, Event{Reason: ReasonRetryNow, Message: fmt.Sprintf("the next attempt begins at %s, %s after the last one", due.UTC().Format(time.RFC3339), in.Policy.MinInterval)}
	}
	return s, Event{Reason: ReasonRetryNow, Message: "the next attempt begins now"}
}

// resetAttempts clears the attempt count, finished steps and Retry-After after a running attempt.
func (s State) resetAttempts(_ Input, _ time.Time) (State, Event) {
	s.Cancelled, s.Repeat, s.SpecDigest, s.NotBefore = false, true, "", time.Time{}
	if s.Phase == Running {
		return s, Event{Reason: ReasonReset, Message: "all begins anew after the attempt under way"}
	}
	return s, Event{Reason: ReasonReset, Message: "all begins anew"}
}
