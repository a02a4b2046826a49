// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"time"
)

func doStale(s *Stage, a *argReader) (string, error) {
	duration, by, muted := a.durationArg("for", 30*time.Second), a.durationArg("by", 0), a.flagArg("muted")
	names := a.wordArgs()
	if len(names) == 0 {
		a.addError("want SERVICE… or nodes")
	}
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	p := s.runningProcess()
	if p == nil {
		return "", errors.New("no process runs")
	}
	for _, name := range names {
		watch := object{"Service", name}
		if name == "nodes" {
			watch = allNodes
		}
		s.mu.Lock()
		known := watch == allNodes || s.cluster.services[name] != nil || p.cache.services[name] != nil
		s.mu.Unlock()
		if !known {
			return "", fmt.Errorf("there is no Service %s", name)
		}
		p.sendPending(watch)
		l := &watchDelay{delay: by, eventsOnly: muted}
		s.mu.Lock()
		p.watchDelays[watch] = l
		s.mu.Unlock()
		s.runAfter(duration, func() {
			s.mu.Lock()
			current := p.watchDelays[watch] == l
			s.mu.Unlock()
			if current {
				p.sendPending(watch)
			}
		})
	}
	return "", nil
}
