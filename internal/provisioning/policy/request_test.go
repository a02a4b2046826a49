// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"
	"time"
)

// A Retry-After holds for the same target until a reset.
func TestRetryAfterHoldsForTarget(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	before := State{Phase: Waiting, SpecDigest: "here/a", Attempts: 2, Since: now, NotBefore: now.Add(time.Hour)}
	for name, tt := range map[string]struct {
		in   Input
		want Action
	}{
		"nothing changes":  {Input{SpecDigest: "here/a"}, WaitUntil},
		"other steps":      {Input{SpecDigest: "here/b"}, WaitUntil},
		"another target":   {Input{SpecDigest: "there/a"}, StartAttempt},
		"retry now":        {Input{SpecDigest: "here/a", Requests: Requests{RetryNow: "1"}}, WaitUntil},
		"reset":            {Input{SpecDigest: "here/a", Requests: Requests{Reset: "1"}}, StartAttempt},
		"of an older Weir": {Input{SpecDigest: "here"}, WaitUntil},
	} {
		s := before
		if name == "of an older Weir" {
			s.SpecDigest = "there"
		}
		tt.in.Policy = DefaultPolicy()
		if _, d := s.NextAction(tt.in, now); d.Action != tt.want {
			t.Errorf("%s: %s, want %s", name, d.Action, tt.want)
		}
	}
}

// A cancellation together with a spec change takes effect.
func TestCancelledWithAChange(t *testing.T) {
	for _, phase := range []Phase{Succeeded, Failed} {
		s, d := State{Phase: phase, SpecDigest: "here/a"}.NextAction(Input{SpecDigest: "here/b", Policy: DefaultPolicy(), Requests: Requests{Cancel: "1"}}, time.Now())
		if s.Phase != Cancelled || d.Action != NoAction {
			t.Errorf("after %s: %s, %s", phase, s.Phase, d.Action)
		}
	}
}
