// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"strings"
	"time"
)

func doEvents(s *Stage, a *argReader) (string, error) {
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	events := s.takeEvents()
	if len(events) == 0 {
		return "nobody was told anything\n", nil
	}
	return strings.Join(events, "\n") + "\n", nil
}

// takeEvents returns and clears the events, as service:event.
func (s *Stage) takeEvents() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []string
	for _, e := range s.history.events {
		events = append(events, e.service+":"+e.reason)
	}
	s.history.events = nil
	return events
}

func doCalls(s *Stage, a *argReader) (string, error) {
	when := a.flagArg("when")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.mu.Lock()
	reads := s.history.reads
	s.mu.Unlock()
	n := s.takeCounts()
	text := fmt.Sprintf("%d GET, %d PUT, %d poll, %d result\n", n["GET"], n["PUT"], n["poll"], n["result"])
	for _, c := range reads {
		if when {
			text += fmt.Sprintf("%s %s\n", s.formatTime(c.at), c.pool.Name)
		}
	}
	return text, nil
}

// takeCounts returns and clears the call counters.
func (s *Stage) takeCounts() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.history.counts
	s.history.counts, s.history.reads = map[string]int{}, nil
	return n
}

func doStatus(s *Stage, a *argReader) (string, error) {
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.opts.Settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	var out strings.Builder
	for _, k := range s.sortedPools() {
		fmt.Fprintf(&out, "%s %s", k.id.Name, s.formatPool(k))
		switch {
		case k.parkedUntil.After(time.Now()):
			fmt.Fprintf(&out, "; parked until %s", s.formatTime(k.parkedUntil))
		case k.gaveUp:
			out.WriteString("; nothing tries again")
		case k.inSync:
			out.WriteString("; in sync")
		}
		out.WriteString("\n")
	}
	if s.process == nil || s.process.killed {
		out.WriteString("no process\n")
	} else {
		fmt.Fprintf(&out, "queue %d\n", s.process.updater.Backlog().Operations)
	}
	return out.String(), nil
}
