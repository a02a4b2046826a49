// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestItIsRenewedAtAThirdOfItsTerm(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		time.Sleep(term/3 - time.Second)
		s.requests("acquire weir")
		time.Sleep(time.Second)
		s.requests("acquire weir")
		for range 10 {
			time.Sleep(term / 3)
			s.requests("acquire weir")
			if !l.valid() {
				s.Fatal("renewed, and not valid")
			}
		}
		l.leave()
		time.Sleep(2 * term)
		s.requests("release weir")
		s.logs()
	})
}

// Renewals fail from the first on: they are tried again, and no write starts in the
// last third of the term, but may again if one comes through in time.
func TestARenewalThatFailsIsTriedAgain(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.down = func(string) bool { return true } })
		time.Sleep(term/3 + 2*term/30 + time.Second)
		s.requests("acquire weir", "fail acquire weir", "fail acquire weir", "fail acquire weir")
		s.logs("could not be renewed; it is tried again")
		time.Sleep(2*term/3 - time.Since(s.start) - time.Second)
		if !l.valid() {
			s.Error("more than a third of the term is left, and it is not valid")
		}
		time.Sleep(time.Second)
		if l.valid() {
			s.Error("a third of the term is left, and a write may start")
		}
		s.isRefused(s.weir, "left to other") // nobody enters what will not do
		s.api.set(func() { s.api.down = nil })
		time.Sleep(term / 30)
		if !l.valid() {
			s.Error("renewed in time, and not valid")
		}
		s.logs("is renewed again")
		l.leave()
	})
}

// A term that ran out is over for those that are in: whoever held it meanwhile may
// have left it again.
func TestATermThatRanOutIsNeverValidAgain(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.down = func(string) bool { return true } })
		time.Sleep(term)
		s.api.set(func() { s.api.holder, s.api.down = "", nil }) // taken and left by somebody meanwhile
		time.Sleep(term)
		if l.valid() || s.weir.Held() {
			s.Error("valid again after it ran out")
		}
		s.isRefused(s.weir, "ran out")
		l.leave()
		time.Sleep(refusalHolds)
		if next := s.enters(s.weir); !next.valid() {
			s.Error("a new acquisition is not valid")
		} else {
			next.leave()
		}
	})
}

func TestWhatSomebodyElseTookIsLostAtOnce(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.holder, s.api.end = "other", time.Now().Add(8*time.Minute) })
		time.Sleep(term / 3)
		synctest.Wait()
		if l.valid() || s.weir.Held() {
			s.Error("somebody else holds it, and a write may start")
		}
		s.logs(`no resource lease: backend pools wait" err="the lease the-lease is held by \"other\"`)
		s.isRefused(s.weir, "other") // at once, not when the pass under way has ended
		s.otherReleases()
		s.api.log = nil
		time.Sleep(term)
		s.requests() // it is not taken back behind those that are in
		if l.valid() {
			s.Error("lost, and valid again")
		}
		l.leave()
		s.requests("release weir")
		time.Sleep(refusalHolds)
		s.enters(s.weir).leave()
		s.logs("ours again")
		if s.weir.Refusals() != 1 {
			s.Errorf("%d refusals, want the loss", s.weir.Refusals())
		}
	})
}

// The last one leaves while a renewal is under way: it is not acquired after the release.
func TestARenewalNeverFollowsARelease(t *testing.T) {
	tell(t, func(s *story) {
		l := s.enters(s.weir)
		s.api.set(func() { s.api.takes = time.Second })
		time.Sleep(term/3 + 500*time.Millisecond) // the renewal is under way
		l.leave()
		time.Sleep(term)
		s.requests("acquire weir", "acquire weir", "release weir")

		l = s.enters(s.weir)
		go func() {
			time.Sleep(term/3 - 500*time.Millisecond)
			l.leave() // the renewal falls due while the release is under way
		}()
		time.Sleep(term)
		s.requests("acquire weir", "release weir")
		if s.api.holder != "" {
			s.Errorf("held by %q though nobody is in", s.api.holder)
		}
	})
}

// Who leaves and is not the last does not wait for a renewal that hangs.
func TestLeavingDoesNotWaitForARenewal(t *testing.T) {
	tell(t, func(s *story) {
		a, b := s.enters(s.weir), s.enters(s.weir)
		s.api.set(func() { s.api.takes = 4 * time.Second })
		time.Sleep(term/3 + time.Second)
		left := time.Now()
		a.leave()
		if time.Since(left) != 0 {
			s.Errorf("waited for %s", time.Since(left))
		}
		b.leave()
	})
}
