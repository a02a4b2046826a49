// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
)

func doKill(s *Stage, a *argReader) (string, error) {
	k := &killPoint{kind: a.textArg("at", ""), pool: a.textArg("pool", ""), nth: a.intArg("nth", 1), after: a.flagArg("after")}
	now := k.kind == ""
	k.stopGracefully = a.flagArg("leader")
	if k.kind == "any" {
		k.kind = ""
	}
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	p := s.runningProcess()
	if p == nil {
		return "", errors.New("no process runs")
	}
	switch {
	case k.kind == resultKind && !k.stopGracefully:
		return "", errors.New("what is answered is settled at once: at=settle is for leader alone")
	case now && k.stopGracefully:
		s.stopGracefully()
		return "", nil
	case now:
		s.stopProcess("at rest or in the midst of work")
		return "", nil
	}
	s.mu.Lock()
	p.killAt = k
	s.mu.Unlock()
	return "", nil
}
