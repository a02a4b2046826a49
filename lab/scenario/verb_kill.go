// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
)

func doKill(s *Stage, a *reader) (string, error) {
	k := &killPoint{kind: a.text("at", ""), pool: a.text("pool", ""), nth: a.number("nth", 1), after: a.flag("after")}
	now := k.kind == ""
	k.leader = a.flag("leader")
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
	switch {
	case k.kind == settling && !k.leader:
		return "", errors.New("what is answered is settled at once: at=settle is for leader alone")
	case now && k.leader:
		s.stepDown()
		return "", nil
	case now:
		s.stop("at rest or in the midst of work")
		return "", nil
	}
	s.mu.Lock()
	p.kill = k
	s.mu.Unlock()
	return "", nil
}
