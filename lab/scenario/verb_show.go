// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"time"
)

func doEvents(s *Stage, a *reader) (string, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	told := s.told()
	if len(told) == 0 {
		return "nobody was told anything\n", nil
	}
	return strings.Join(told, "\n") + "\n", nil
}

// told returns and clears the events, as service:event.
func (s *Stage) told() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var told []string
	for _, e := range s.journal.events {
		told = append(told, e.service+":"+e.word)
	}
	s.journal.events = nil
	return told
}

func doCalls(s *Stage, a *reader) (string, error) {
	when := a.flag("when")
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	reads := s.journal.reads
	s.mu.Unlock()
	n := s.counted()
	text := fmt.Sprintf("%d GET, %d PUT, %d poll, %d result\n", n["GET"], n["PUT"], n["poll"], n["result"])
	for _, c := range reads {
		if when {
			text += fmt.Sprintf("%s %s\n", s.clock(c.at), c.pool.Name)
		}
	}
	return text, nil
}

// counted returns and clears the call counters.
func (s *Stage) counted() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.journal.counts
	s.journal.counts, s.journal.reads = map[string]int{}, nil
	return n
}

func doStatus(s *Stage, a *reader) (string, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	s.opts.Settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	for _, k := range s.sorted() {
		fmt.Fprintf(&out, "%s %s", k.id.Name, s.spell(k))
		switch {
		case k.parkedUntil.After(time.Now()):
			fmt.Fprintf(&out, "; parked until %s", s.clock(k.parkedUntil))
		case k.givenUp:
			out.WriteString("; nothing tries again")
		case k.level:
			out.WriteString("; level")
		}
		out.WriteString("\n")
	}
	if s.process == nil || s.process.dead {
		out.WriteString("no process\n")
	} else {
		fmt.Fprintf(&out, "queue %d\n", s.process.lanes.Backlog().Operations)
	}
	return out.String(), nil
}
