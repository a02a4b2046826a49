// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"testing"
	"time"
)

// A Retry-After holds for the same target until a reset.
func TestHowLongAServersWordLasts(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	was := State{Phase: Waiting, Job: "here/a", Begun: 2, Since: now, NotBefore: now.Add(time.Hour)}
	for name, tt := range map[string]struct {
		in   Input
		want Do
	}{
		"nothing changes":  {Input{Job: "here/a"}, Await},
		"other steps":      {Input{Job: "here/b"}, Await},
		"another target":   {Input{Job: "there/a"}, Begin},
		"retry now":        {Input{Job: "here/a", Requests: Requests{RetryNow: "1"}}, Await},
		"reset":            {Input{Job: "here/a", Requests: Requests{Reset: "1"}}, Begin},
		"of an older Weir": {Input{Job: "here"}, Await},
	} {
		s := was
		if name == "of an older Weir" {
			s.Job = "there"
		}
		tt.in.Policy = BuiltIn()
		if _, d := s.Next(tt.in, now); d.Do != tt.want {
			t.Errorf("%s: %s, want %s", name, d.Do, tt.want)
		}
	}
}

// A cancellation together with a spec change takes effect.
func TestCancelledWithAChange(t *testing.T) {
	for _, phase := range []Phase{Succeeded, Failed} {
		s, d := State{Phase: phase, Job: "here/a"}.Next(Input{Job: "here/b", Policy: BuiltIn(), Requests: Requests{Cancel: "1"}}, time.Now())
		if s.Phase != Cancelled || d.Do != Rest {
			t.Errorf("after %s: %s, %s", phase, s.Phase, d.Do)
		}
	}
}
