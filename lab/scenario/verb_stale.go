// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"time"
)

func doStale(s *Stage, a *reader) (string, error) {
	lasts, by, muted := a.duration("for", 30*time.Second), a.duration("by", 0), a.flag("muted")
	names := a.words()
	if len(names) == 0 {
		a.complain("want SERVICE… or nodes")
	}
	if err := a.err(); err != nil {
		return "", err
	}
	p := s.alive()
	if p == nil {
		return "", errors.New("no process runs")
	}
	for _, name := range names {
		watch := object{"Service", name}
		if name == "nodes" {
			watch = everyNode
		}
		s.mu.Lock()
		known := watch == everyNode || s.cluster.services[name] != nil || p.seen.services[name] != nil
		s.mu.Unlock()
		if !known {
			return "", fmt.Errorf("there is no Service %s", name)
		}
		p.catchUp(watch)
		l := &lag{by: by, muted: muted}
		s.mu.Lock()
		p.lags[watch] = l
		s.mu.Unlock()
		s.after(lasts, func() {
			s.mu.Lock()
			current := p.lags[watch] == l
			s.mu.Unlock()
			if current {
				p.catchUp(watch)
			}
		})
	}
	return "", nil
}
