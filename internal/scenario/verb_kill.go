// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
)

func doKill(s *Stage, a *reader) (string, error) {
	k := &killPoint{kind: a.text("at", ""), pool: a.text("pool", ""), nth: a.number("nth", 1), after: a.flag("after")}
	now, leader := k.kind == "", a.flag("leader")
	if k.kind == "any" {
		k.kind = ""
	}
	if err := a.err(); err != nil {
		return "", err
	}
	p := s.alive()
	if p == nil {
		return "", errors.New("no process runs")
	}
	if leader {
		s.stepDown()
		return "", nil
	}
	if now {
		s.stop("at rest or in the midst of work")
		return "", nil
	}
	s.mu.Lock()
	p.kill = k
	s.mu.Unlock()
	return "", nil
}
