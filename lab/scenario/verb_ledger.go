// SPDX-License-Identifier: Apache-2.0

package scenario

import "time"

// ledgerFaults are injected failures of ledger writes.
type ledgerFaults struct {
	left    int // -1: unlimited
	until   time.Time
	applied bool
	// slow delays writes instead of failing them.
	slow time.Duration
}

func (l *ledgerFaults) acts() bool {
	return l.left != 0 && (l.until.IsZero() || l.until.After(time.Now()))
}

// fails counts a write and reports whether its writer gets an error, and whether it was applied.
func (l *ledgerFaults) fails() (fails, applied bool) {
	if l.slow > 0 || !l.acts() {
		return false, false
	}
	if l.left > 0 {
		l.left--
	}
	return true, l.applied
}

// lag counts a write and returns its delay.
func (l *ledgerFaults) lag() time.Duration {
	if l.slow == 0 || !l.acts() {
		return 0
	}
	if l.left > 0 {
		l.left--
	}
	return l.slow
}

func doLedger(s *Stage, a *reader) (string, error) {
	next := ledgerFaults{left: a.number("times", -1), applied: a.flag("applied"), slow: a.duration("by", 0)}
	lasts, slow := a.duration("for", 0), a.flag("slow")
	if a.flag("fail") == slow || slow != (next.slow > 0) {
		a.complain("want fail, or slow and by")
	}
	if err := a.err(); err != nil {
		return "", err
	}
	if lasts > 0 {
		next.until = time.Now().Add(lasts)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger = next
	return "", nil
}
