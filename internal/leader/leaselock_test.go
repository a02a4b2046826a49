// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestItIsRenewedAtAThirdOfItsTerm(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		time.Sleep(termLease/3 - time.Second)
		s.requests("acquire weir")
		time.Sleep(time.Second)
		s.requests("acquire weir")
		for range 10 {
			time.Sleep(termLease / 3)
			s.requests("acquire weir")
			if !l.valid() {
				s.Fatal("renewed, and not valid")
			}
		}
		l.leave()
		time.Sleep(2 * termLease)
		s.requests("release weir")
		s.logs()
	})
}

// Failed renewals are retried, and no write starts in the last third of the term until one
// succeeds.
func TestARenewalThatFailsIsTriedAgain(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.down = func(string) bool { return true } })
		time.Sleep(termLease/3 + 2*termLease/30 + time.Second)
		s.requests("acquire weir", "fail acquire weir", "fail acquire weir", "fail acquire weir")
		s.logs("could not be renewed; it is tried again")
		time.Sleep(2*termLease/3 - time.Since(s.start) - time.Second)
		if !l.valid() {
			s.Error("more than a third of the term is left, and it is not valid")
		}
		time.Sleep(time.Second)
		if l.valid() {
			s.Error("a third of the term is left, and a write may start")
		}
		s.isRefused(s.weir, "left to other") // no worker may enter
		s.api.set(func() { s.api.down = nil })
		time.Sleep(termLease / 30)
		if !l.valid() {
			s.Error("renewed in time, and not valid")
		}
		s.logs("is renewed again")
		l.leave()
	})
}

// An expired term is over for its workers, even if the Lease is free: another process may have held
// it in between.
func TestATermThatRanOutIsNeverValidAgain(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.down = func(string) bool { return true } })
		time.Sleep(termLease)
		s.api.set(func() { s.api.holder, s.api.down = "", nil }) // another process took and released it
		time.Sleep(termLease)
		if l.valid() || s.weir.IsHolder() {
			s.Error("valid again after it ran out")
		}
		s.isRefused(s.weir, "ran out")
		l.leave()
		time.Sleep(failureTTL)
		if next := s.enters(s.weir); !next.valid() {
			s.Error("a new acquisition is not valid")
		} else {
			next.leave()
		}
	})
}

func TestLeaseTakenByAnotherIsLostAtOnce(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.holder, s.api.end = "other", time.Now().Add(8*time.Minute) })
		time.Sleep(termLease / 3)
		synctest.Wait()
		if l.valid() || s.weir.IsHolder() {
			s.Error("another client holds it, and a write may start")
		}
		s.logs(`no resource lease: backend pools wait" err="the lease the-lease is held by \"other\"`)
		s.isRefused(s.weir, "other") // at once, not after the running pass
		s.otherReleases()
		s.api.log = nil
		time.Sleep(termLease)
		s.requests() // it is not acquired while workers are inside
		if l.valid() {
			s.Error("lost, and valid again")
		}
		l.leave()
		s.requests("release weir")
		time.Sleep(failureTTL)
		s.enters(s.weir).leave()
		s.logs("ours again")
		if s.weir.FailureCount() != 1 {
			s.Errorf("%d refusals, want the loss", s.weir.FailureCount())
		}
	})
}

// The last worker leaves during a renewal: the Lease is not renewed after the release.
func TestARenewalNeverFollowsARelease(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.takes = time.Second })
		time.Sleep(termLease/3 + 500*time.Millisecond) // the renewal is running
		l.leave()
		time.Sleep(termLease)
		s.requests("acquire weir", "acquire weir", "release weir")

		l = s.enters(s.weir)
		go func() {
			time.Sleep(termLease/3 - 500*time.Millisecond)
			l.leave() // the renewal becomes due during the release
		}()
		time.Sleep(termLease)
		s.requests("acquire weir", "release weir")
		if s.api.holder != "" {
			s.Errorf("held by %q though nobody is in", s.api.holder)
		}
	})
}

// A worker that is not the last leaves without waiting for a hanging renewal.
func TestLeavingDoesNotWaitForARenewal(t *testing.T) {
	tell(t, func(s *story) {
		a, b := s.enters(s.weir), s.enters(s.weir)
		s.api.set(func() { s.api.takes = 4 * time.Second })
		time.Sleep(termLease/3 + time.Second)
		remaining := time.Now()
		a.leave()
		if time.Since(remaining) != 0 {
			s.Errorf("waited for %s", time.Since(remaining))
		}
		b.leave()
	})
}
