// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
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

// lateWrites are writes whose sender gets a connection error, and which reach Azure later.
type lateWrites struct {
	pool  string // empty: any
	left  int
	after time.Duration
	// status is the proxy's response; 0: the connection breaks.
	status int
}

func (s *Stage) loseLate(a *reader) error {
	l := &lateWrites{pool: a.text("pool", ""), left: a.number("times", 1), after: a.duration("late", 0), status: a.number("status", 0)}
	if err := a.err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = l
	return nil
}

// lateness returns the delay of a call and the status its sender gets; 0 if not late.
func (s *Stage) lateness(c call) (late time.Duration, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.late
	if l == nil || l.left == 0 || c.kind != http.MethodPut || l.pool != "" && l.pool != c.pool.Name {
		return 0, 0
	}
	l.left--
	how := "the connection breaks"
	if l.status > 0 {
		how = fmt.Sprintf("%d from a proxy", l.status)
	}
	s.trace(c.who(), "%-6s %s, it lands %s later", c.kind, how, l.after)
	for _, k := range s.about(c) {
		k.last = answer{kind: c.kind, status: l.status, forged: true, at: time.Now()}
		k.trouble = later(k.trouble, time.Now().Add(l.after))
	}
	return l.after, l.status
}

// later runs a function that Close waits for.
func (s *Stage) later(run func()) { s.underWay.Go(run) }
