// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// hear handles new user requests in chronological order.
func (s State) hear(in Input, now time.Time) (State, []Word) {
	type request struct {
		at, handled string
		answer      func(State, Input, time.Time) (State, Word)
	}
	all := []request{ // at equal times, Cancel wins
		{in.Requests.Reset, s.Handled.Reset, State.reset},
		{in.Requests.RetryNow, s.Handled.RetryNow, State.retryNow},
		{in.Requests.Cancel, s.Handled.Cancel, State.cancel},
	}
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Compare(moment(a.at), moment(b.at)) })
	var events []Word
	for _, r := range all {
		if r.at == "" || r.at == r.handled {
			continue
		}
		var event Word
		if s, event = r.answer(s, in, now); event.Reason != "" {
			events = append(events, event)
		}
	}
	s.Handled = in.Requests
	return s, events
}

func moment(at string) int64 {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return -1 << 63
	}
	return t.UnixNano()
}

// cancel does not stop a running attempt, which may succeed.
func (s State) cancel(in Input, _ time.Time) (State, Word) {
	if s.Cancelled || s.Job == in.Job && (s.Phase == Succeeded || s.Phase == Failed) {
		return s, Word{}
	}
	s.Cancelled = true
	if s.Phase == Running {
		return s, Word{Reason: ReasonCancelled, Text: "upcoming attempts are cancelled; the one under way goes on"}
	}
	return s, Word{Reason: ReasonCancelled, Text: "upcoming attempts are cancelled"}
}

// retryNow skips Weir's own waiting, but not the server's Retry-After. After the last attempt it
// allows one more.
func (s State) retryNow(in Input, now time.Time) (State, Word) {
	s.Cancelled = false
	switch s.Phase {
	case Running:
		return s, Word{Reason: ReasonNothingToSkip, Text: "an attempt is under way already"}
	case "":
		return s, Word{}
	case Waiting:
		s.Waited += s.waitedSince(in.Policy, now)
	case Succeeded:
		s.Begun, s.Waited = 0, 0
	}
	s.Phase, s.Since, s.Asked = Waiting, now, true
	if s.NotBefore.After(now) {
		return s, Word{Reason: ReasonRetryNow, Text: "the next attempt begins at " + s.NotBefore.UTC().Format(time.RFC3339) + ", which the target asked for"}
	}
	if due := s.Due(in.Policy); due.After(now) {
		return s, Word{Reason: ReasonRetryNow, Text: fmt.Sprintf("the next attempt begins at %s, %s after the last one", due.UTC().Format(time.RFC3339), in.Policy.MinInterval)}
	}
	return s, Word{Reason: ReasonRetryNow, Text: "the next attempt begins now"}
}

// reset clears the attempt count, finished steps and Retry-After after a running attempt.
func (s State) reset(_ Input, _ time.Time) (State, Word) {
	s.Cancelled, s.Anew, s.Job, s.NotBefore = false, true, "", time.Time{}
	if s.Phase == Running {
		return s, Word{Reason: ReasonReset, Text: "all begins anew after the attempt under way"}
	}
	return s, Word{Reason: ReasonReset, Text: "all begins anew"}
}
