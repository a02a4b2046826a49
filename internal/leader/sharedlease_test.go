// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestTheFirstInAcquiresAndTheLastOutReleases(t *testing.T) {
	tell(t, func(s *story) {
		first := s.enters(s.weir)
		s.requests("acquire weir")
		second := s.enters(s.weir) // shares it
		if !first.valid() || !second.valid() || !s.weir.IsHolder() {
			s.Error("it is ours, and not valid")
		}
		first.leave()
		s.requests()
		if !second.valid() {
			s.Error("one of two left, and it is not valid any more")
		}
		second.leave()
		s.requests("release weir")
		if second.valid() || s.weir.IsHolder() {
			s.Error("valid after the last has left")
		}
		s.logs()
	})
}

func TestLanesThatComeAtOnceAcquireItOnce(t *testing.T) {
	tell(t, func(s *story) {
		s.api.takes = time.Second
		var in [10]lane
		for i := range in {
			go func() { in[i] = s.enters(s.weir) }()
		}
		time.Sleep(2 * time.Second)
		s.requests("acquire weir")
		for _, l := range in {
			go l.leave()
		}
		time.Sleep(2 * time.Second)
		s.requests("release weir")
	})
}

// A worker that comes during the last one's release acquires the Lease again.
func TestNoWorkerEntersDuringRelease(t *testing.T) {
	tell(t, func(s *story) {
		s.api.takes = time.Second
		first := s.enters(s.weir)
		go first.leave()
		synctest.Wait()
		second := s.enters(s.weir)
		s.requests("acquire weir", "release weir", "acquire weir")
		if first.valid() || !second.valid() {
			s.Error("the old acquisition is valid, or the new one is not")
		}
		second.leave()
	})
}

func TestARefusalCostsOneRequestASecondHoweverManyAsk(t *testing.T) {
	tell(t, func(s *story) {
		s.otherTakes()
		s.requests("acquire other")
		for range 10 {
			for range 20 {
				s.isRefused(s.weir, `the-lease is held by "other"`)
				time.Sleep(50 * time.Millisecond)
			}
		}
		synctest.Wait()
		s.api.mu.Lock()
		requested := len(s.api.log)
		s.api.log = nil
		s.api.mu.Unlock()
		if requested != 10 || s.weir.FailureCount() != 10 {
			s.Errorf("%d requests and %d refusals in ten seconds, want 10", requested, s.weir.FailureCount())
		}
		s.logs("no resource lease: backend pools wait")
		s.otherReleases()
		l := s.enters(s.weir)
		s.logs("the resource lease is ours again")
		l.leave()
		s.enters(s.weir).leave()
		s.logs()
	})
}

// Consecutive passes are one session: after a minute other processes get the Lease, even if it was
// briefly free before.
func TestAfterATurnOthersReallyGetIt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lanes int
		gap   time.Duration
	}{{"two lanes that never leave it free", 2, 0}, {"one lane, and moments between its passes", 1, 10 * time.Millisecond}} {
		t.Run(tt.name, func(t *testing.T) {
			tell(t, func(s *story) {
				const end = 3 * time.Minute
				passes := make([]int, tt.lanes)
				for i := range tt.lanes {
					go func() {
						time.Sleep(time.Duration(i) * time.Second)
						for time.Since(s.start) < end {
							_, leave, err := s.weir.Enter(s.Context())
							if err != nil { // the other process has it
								time.Sleep(time.Second)
								continue
							}
							passes[i]++
							time.Sleep(2 * time.Second)
							leave()
							time.Sleep(tt.gap)
						}
					}()
				}
				// the other process polls
				time.Sleep(time.Millisecond)
				for s.api.as("other").Acquire(s.Context()) != nil {
					time.Sleep(3*time.Second + time.Millisecond)
				}
				if got := time.Since(s.start); got < sessionDuration || got > sessionDuration+waitTimeout {
					s.Errorf("the other got it after %s, want soon after our turn", got)
				}
				time.Sleep(10 * time.Second)
				s.otherReleases()
				time.Sleep(2 * end)
				synctest.Wait()
				for _, n := range passes {
					if n < 60 {
						s.Errorf("passes of our lanes in three minutes: %d", passes)
					}
				}
			})
		})
	}
}

// A worker that comes after a session waits for those inside, and then for the pause.
func TestNoWorkerEntersUntilLeaseWasFree(t *testing.T) {
	tell(t, func(s *story) {
		s.api.takes = time.Second // the time of a release does not count as the pause
		long := s.enters(s.weir)
		time.Sleep(sessionDuration)
		s.requests("acquire weir")
		go func() {
			time.Sleep(3 * time.Second)
			long.leave()
		}()
		requested := time.Now()
		late := s.enters(s.weir)
		s.requests("release weir", "acquire weir")
		if waited := time.Since(requested); waited != 3*time.Second+time.Second+releaseDuration+time.Second {
			s.Errorf("entered after %s, want the end of the pass, the release, the breath and the request", waited)
		}
		late.leave()
		recheckAt := time.Now()
		s.enters(s.weir).leave() // a session of its own
		if waited := time.Since(recheckAt); waited != 2*time.Second {
			s.Errorf("the next waited for %s", waited)
		}
	})
}

// A session starts with the request for the Lease: the machine may sleep before the response.
func TestATurnLastsAlsoWhileTheMachineSleeps(t *testing.T) {
	tell(t, func(s *story) {
		asleep := &sleeper{s.api.as("weir"), sessionDuration}
		s.weir = NewSharedLease(asleep, termLease, s.weir.log)
		first := s.enters(s.weir)
		asleep.sleeps = 0
		first.leave()
		s.requests("acquire weir", "release weir")
		recheckAt := time.Now()
		s.enters(s.weir).leave()
		if waited := time.Since(recheckAt); waited != releaseDuration {
			s.Errorf("after a turn that was slept through it is taken again after %s, want %s", waited, releaseDuration)
		}
	})
}

// A worker does not wait for minutes without an error.
func TestWaitForWholeSessionReturnsReason(t *testing.T) {
	tell(t, func(s *story) {
		long := s.enters(s.weir)
		time.Sleep(sessionDuration)
		requested := time.Now()
		s.isRefused(s.weir, "left to other controllers for a moment")
		if time.Since(requested) != waitTimeout || s.weir.FailureCount() != 0 || !long.valid() {
			s.Errorf("after %s, %d refusals", time.Since(requested), s.weir.FailureCount())
		}
		long.leave()
		s.logs()
	})
}

func TestAContextThatEnds(t *testing.T) {
	tell(t, func(s *story) {
		s.Log("while another's turn is waited for")
		long := s.enters(s.weir)
		time.Sleep(sessionDuration)
		ctx, stop := context.WithTimeout(s.Context(), time.Second)
		defer stop()
		requested := time.Now()
		if _, _, err := s.weir.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(requested) != time.Second {
			s.Errorf("after %s: %v", time.Since(requested), err)
		}
		long.leave()
		time.Sleep(time.Minute)
		s.requests("acquire weir", "release weir")

		s.Log("while it is acquired: what was served is not left behind")
		s.api.takes = 2 * time.Second
		ctx, stop = context.WithTimeout(s.Context(), time.Second)
		defer stop()
		if _, leave, err := s.weir.Enter(ctx); err == nil {
			leave()
		}
		s.requests("acquire weir", "release weir")
		if s.api.holder != "" || s.weir.IsHolder() {
			s.Error("nobody is in, and it is held")
		}

		s.Log("while another's request is under way")
		s.api.takes = 4 * time.Second
		go func() { s.enters(s.weir).leave() }()
		synctest.Wait()
		ctx, stop = context.WithTimeout(s.Context(), time.Second)
		defer stop()
		requested = time.Now()
		if _, _, err := s.weir.Enter(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(requested) != time.Second {
			s.Errorf("after %s: %v", time.Since(requested), err)
		}
		time.Sleep(time.Minute)
		if s.weir.FailureCount() != 0 {
			s.Error("who gave up counts as refused")
		}
		s.logs()
	})
}

// A lost response may hide a success: the Lease is released, so that no process waits for its
// expiry.
func TestAnAcquisitionWhoseAnswerWasLostIsTakenBack(t *testing.T) {
	tell(t, func(s *story) {
		s.api.lost = true
		s.api.down = func(request string) bool { return request == "acquire" }
		s.isRefused(s.weir, errDown.Error())
		s.requests("acquire weir", "release weir")
		s.api.down = nil
		s.otherTakes()
		s.logs("no resource lease")
	})
}

func TestAnAPIServerThatHangsCostsTheLaneSeconds(t *testing.T) {
	tell(t, func(s *story) {
		s.api.takes = time.Hour
		requested := time.Now()
		s.isRefused(s.weir, context.DeadlineExceeded.Error())
		if waited := time.Since(requested); waited != 2*requestTimeout {
			s.Errorf("%s", waited)
		}
	})
}

func TestAReleaseThatFails(t *testing.T) {
	tell(t, func(s *story) {
		s.api.down = func(request string) bool { return request == "release" }
		s.enters(s.weir).leave()
		s.requests("acquire weir", "fail release weir")
		s.logs("could not be released; it expires")
		if s.weir.IsHolder() {
			s.Error("nobody is in, and it counts as held")
		}
		time.Sleep(2 * termLease)
		s.requests() // an unused Lease is not renewed
		s.otherTakes()
		s.isRefused(s.weir, "other")
	})
}

// A killed process does not release the Lease: its successor of the same name continues at once,
// others after the term.
func TestACrash(t *testing.T) {
	tell(t, func(s *story) {
		if err := s.api.as("weir").Acquire(s.Context()); err != nil { // then the process is killed
			s.Fatal(err)
		}
		next := s.enters(s.weir)
		if !next.valid() {
			s.Error("the next process of the name cannot go on")
		}
		next.leave()

		if err := s.api.as("weir").Acquire(s.Context()); err != nil { // then the process is killed for good
			s.Fatal(err)
		}
		var held *HolderError
		if err := s.api.as("other").Acquire(s.Context()); !errors.As(err, &held) || held.Holder != "weir" {
			s.Errorf("the other got %v within the term", err)
		}
		time.Sleep(termLease)
		s.otherTakes()
	})
}

// An event is repeated when its text changes, so the text must not change with each renewal.
func TestARefusalReadsTheSameWhileTheSameOneHoldsIt(t *testing.T) {
	now := time.Now()
	a, b := &HolderError{"the-lease", "other", now}, &HolderError{"the-lease", "other", now.Add(time.Hour)}
	if a.Error() != b.Error() {
		t.Errorf("%v, then %v", a, b)
	}
}
