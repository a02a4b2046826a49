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

func (l *statusErrors) isActive() bool {
	return l.writesLeft != 0 && (l.until.IsZero() || l.until.After(time.Now()))
}

// nextFailure counts a write and reports whether its writer gets an error, and whether it was applied.
func (l *statusErrors) nextFailure() (fails, applied bool) {
	if l.slow > 0 || !l.isActive() {
		return false, false
	}
	if l.writesLeft > 0 {
		l.writesLeft--
	}
	return true, l.applied
}

// nextDelay counts a write and returns its delay.
func (l *statusErrors) nextDelay() time.Duration {
	if l.slow == 0 || !l.isActive() {
		return 0
	}
	if l.writesLeft > 0 {
		l.writesLeft--
	}
	return l.slow
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
