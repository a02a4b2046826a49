// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/internal/lb"
)

func doLock(s *Stage, a *reader) (string, error) {
	lasts := a.duration("for", 10*time.Second)
	name := a.word("load balancer")
	if err := a.err(); err != nil {
		return "", err
	}
	p := s.alive()
	if p == nil {
		return "", errors.New("no process runs")
	}
	s.mu.Lock()
	id, closing := s.balancer(name), s.closing
	s.mu.Unlock()
	if id == nil {
		return "", fmt.Errorf("there is no load balancer %s", name)
	}
	s.later(func() {
		unlock, err := p.lanes.Lock(p.ctx, *id)
		if err != nil {
			return
		}
		defer unlock()
		s.mu.Lock()
		if !p.former {
			s.locked[id.Key()] = p
		}
		s.trace(name, "its lane is held by another part of the process")
		s.mu.Unlock()
		waited(lasts, closing, p.ctx.Done())
		p.awake(lb.PoolID{LoadBalancer: *id})
		s.mu.Lock()
		if s.locked[id.Key()] == p {
			delete(s.locked, id.Key())
		}
		p.freed[id.Key()] = time.Now()
		s.excuse(func(k *pool) bool { return k.id.LoadBalancer.Key() == id.Key() })
		s.mu.Unlock()
	})
	return "", nil
}
