// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"net/http"
	"time"
)

func doLoseAnswer(s *Stage, a *argReader) (string, error) {
	if a.hasArg("late") {
		return "", s.addStaleWrites(a)
	}
	action := map[string]any{"drop": true, "applied": !a.flagArg("unapplied")}
	return "", s.addFaultFrom(a, s.parseLockMatch(a, "PUT"), action)
}

// staleWrites reach Azure after their sender got a connection error.
type staleWrites struct {
	pool      string // empty: any
	remaining int
	after     time.Duration
	// status is the proxy's response; 0: the connection breaks.
	status int
}

func (s *Stage) addStaleWrites(a *argReader) error {
	l := &staleWrites{pool: a.textArg("pool", ""), remaining: a.intArg("times", 1), after: a.durationArg("late", 0), status: a.intArg("status", 0)}
	if err := a.joinErrors(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.staleWrites = l
	return nil
}

// writeDelay returns the delay of a call and the status its sender gets; 0 if not late.
func (s *Stage) writeDelay(c call) (late time.Duration, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.staleWrites
	if l == nil || l.remaining == 0 || c.kind != http.MethodPut || l.pool != "" && l.pool != c.pool.Name {
		return 0, 0
	}
	l.remaining--
	how := "the connection breaks"
	if l.status > 0 {
		how = fmt.Sprintf("%d from a proxy", l.status)
	}
	s.addLine(c.targetName(), "%-6s %s, it lands %s later", c.kind, how, l.after)
	for _, k := range s.callPools(c) {
		k.lastAnswer = response{kind: c.kind, status: l.status, fromFault: true, at: time.Now()}
		k.faultEnd = latest(k.faultEnd, time.Now().Add(l.after))
	}
	return l.after, l.status
}

// runLater runs a function that Close waits for.
func (s *Stage) runLater(run func()) { s.pendingWrites.Go(run) }
