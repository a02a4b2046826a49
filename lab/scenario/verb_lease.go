// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"time"
)

func doLease(s *Stage, a *reader) (string, error) {
	lasts, times := a.duration("for", 0), a.number("times", 0)
	steal, applied, by := a.flag("steal"), a.flag("applied"), a.duration("by", 0)
	what := a.word("take, release, fail or slow")
	if err := a.err(); err != nil {
		return "", err
	}
	if s.opts.LeaseTerm == 0 {
		return "", errors.New("there is no lease: give cluster one")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lease
	switch what {
	case "take":
		if lasts == 0 {
			lasts = s.opts.LeaseTerm
		}
		if steal || l.heldBy(time.Now()) == "" {
			s.giveLease(lasts)
			return "", nil
		}
		l.wanted++
		closing := s.closing
		s.later(func() { s.waitForLease(lasts, closing) })
	case "release":
		if l.holder == somebodyElse {
			l.holder = ""
			s.trace("lease", "given back by somebody else")
		}
	case "fail":
		l.failing, l.fails, l.failsTo = "lost", times, time.Time{}
		if applied {
			l.failing = "applied"
		}
		if times == 0 {
			l.fails = -1
		}
		if lasts > 0 {
			l.failsTo = time.Now().Add(lasts)
		}
	case "slow":
		if l.slow, l.slowTo = by, (time.Time{}); lasts > 0 {
			l.slowTo = time.Now().Add(lasts)
		}
	default:
		return "", errors.New("want take, release, fail or slow")
	}
	return "", nil
}

// giveLease gives the lease to another holder. The caller holds s.mu.
func (s *Stage) giveLease(lasts time.Duration) {
	l, now := &s.lease, time.Now()
	if l.heldBy(now) != "" && l.holder != somebodyElse {
		s.trace("lease", "taken away by somebody else")
	} else {
		s.trace("lease", "taken by somebody else")
	}
	l.holder, l.until, l.since = somebodyElse, now.Add(lasts), now
}

// waitForLease acquires the lease when it is free: another controller retries every 2 s.
func (s *Stage) waitForLease(lasts time.Duration, closing <-chan struct{}) {
	defer func() {
		s.mu.Lock()
		s.lease.wanted--
		s.mu.Unlock()
	}()
	for waited(2*time.Second, closing) {
		s.mu.Lock()
		free := s.lease.heldBy(time.Now()) == ""
		if free {
			s.giveLease(lasts)
		}
		s.mu.Unlock()
		if free {
			return
		}
	}
}
