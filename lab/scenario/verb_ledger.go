// SPDX-License-Identifier: Apache-2.0

package scenario

import "time"

// statusErrors are injected failures of ledger writes.
type statusErrors struct {
	writesLeft int // -1: unlimited
	until      time.Time
	applied    bool
	// slow delays writes instead of failing them.
	slow time.Duration
}

func (s *statusErrors) isActive() bool {
	return s.writesLeft != 0 && (s.until.IsZero() || s.until.After(time.Now()))
}

// nextFailure counts a write and reports whether its writer gets an error, and whether it was applied.
func (s *statusErrors) nextFailure() (fails, applied bool) {
	if s.slow > 0 || !s.isActive() {
		return false, false
	}
	if s.writesLeft > 0 {
		s.writesLeft--
	}
	return true, s.applied
}

// nextDelay counts a write and returns its delay.
func (s *statusErrors) nextDelay() time.Duration {
	if s.slow == 0 || !s.isActive() {
		return 0
	}
	if s.writesLeft > 0 {
		s.writesLeft--
	}
	return s.slow
}

func doLedger(s *Stage, a *argReader) (string, error) {
	next := statusErrors{writesLeft: a.intArg("times", -1), applied: a.flagArg("applied"), slow: a.durationArg("by", 0)}
	duration, slow := a.durationArg("for", 0), a.flagArg("slow")
	if a.flagArg("fail") == slow || slow != (next.slow > 0) {
		a.addError("want fail, or slow and by")
	}
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	if duration > 0 {
		next.until = time.Now().Add(duration)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.statusErrors = next
	return "", nil
}
