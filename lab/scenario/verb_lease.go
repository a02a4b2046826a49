// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"time"
)

func doLease(s *Stage, a *argReader) (string, error) {
	duration, times := a.durationArg("for", 0), a.intArg("times", 0)
	steal, applied, by := a.flagArg("steal"), a.flagArg("applied"), a.durationArg("by", 0)
	action := a.wordArg("take, release, fail or slow")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	if s.opts.LeaseTerm == 0 {
		return "", errors.New("there is no lease: give cluster one")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &s.lease
	switch action {
	case "take":
		if duration == 0 {
			duration = s.opts.LeaseTerm
		}
		if steal || l.currentHolder(time.Now()) == "" {
			s.setLeaseHolder(duration)
			return "", nil
		}
		l.waiters++
		closing := s.closed
		s.runLater(func() { s.waitForLease(duration, closing) })
	case "release":
		if l.holder == otherHolder {
			l.holder = ""
			s.addLine("lease", "given back by another client")
		}
	case "fail":
		l.failureMode, l.failuresLeft, l.failUntil = "lost", times, time.Time{}
		if applied {
			l.failureMode = "applied"
		}
		if times == 0 {
			l.failuresLeft = -1
		}
		if duration > 0 {
			l.failUntil = time.Now().Add(duration)
		}
	case "slow":
		if l.delay, l.delayUntil = by, (time.Time{}); duration > 0 {
			l.delayUntil = time.Now().Add(duration)
		}
	default:
		return "", errors.New("want take, release, fail or slow")
	}
	return "", nil
}

// setLeaseHolder gives the lease to another holder. The caller holds s.mu.
func (s *Stage) setLeaseHolder(duration time.Duration) {
	l, now := &s.lease, time.Now()
	if l.currentHolder(now) != "" && l.holder != otherHolder {
		s.addLine("lease", "taken away by another client")
	} else {
		s.addLine("lease", "taken by another client")
	}
	l.holder, l.until, l.since = otherHolder, now.Add(duration), now
}

// waitForLease acquires the lease when it is free: another controller retries every 2 s.
func (s *Stage) waitForLease(duration time.Duration, closing <-chan struct{}) {
	defer func() {
		s.mu.Lock()
		s.lease.waiters--
		s.mu.Unlock()
	}()
	for waitFor(2*time.Second, closing) {
		s.mu.Lock()
		free := s.lease.currentHolder(time.Now()) == ""
		if free {
			s.setLeaseHolder(duration)
		}
		s.mu.Unlock()
		if free {
			return
		}
	}
}
