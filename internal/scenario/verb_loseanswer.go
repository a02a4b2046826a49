// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"net/http"
	"time"
)

func doLoseAnswer(s *Stage, a *reader) (string, error) {
	if a.has("late") {
		return "", s.loseLate(a)
	}
	action := map[string]any{"drop": true, "applied": !a.flag("unapplied")}
	return "", s.arm(a, s.whereLocked(a, "PUT"), action)
}

// lateWrites are writes whose sender sees the connection break, and which reach Azure
// later all the same.
type lateWrites struct {
	pool  string // empty is any
	left  int
	after time.Duration
}

func (s *Stage) loseLate(a *reader) error {
	l := &lateWrites{pool: a.text("pool", ""), left: a.number("times", 1), after: a.duration("late", 0)}
	if err := a.err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = l
	return nil
}

// lateness returns how much later a call lands; 0 for one that is not late.
func (s *Stage) lateness(c call) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.late
	if l == nil || l.left == 0 || c.kind != http.MethodPut || l.pool != "" && l.pool != c.pool.Name {
		return 0
	}
	l.left--
	s.trace(c.pool.Name, "%-6s the connection breaks, it lands %s later", c.kind, l.after)
	k := s.pools[c.pool.Key()]
	k.last = answer{kind: c.kind}
	k.trouble = later(k.trouble, time.Now().Add(l.after))
	return l.after
}

// later runs something that Close waits for.
func (s *Stage) later(run func()) { s.underWay.Go(run) }
