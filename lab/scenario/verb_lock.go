// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"time"

	"weir.dev/weir/internal/lb"
)

func doLock(s *Stage, a *argReader) (string, error) {
	duration := a.durationArg("for", 10*time.Second)
	name := a.wordArg("load balancer")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	p := s.runningProcess()
	if p == nil {
		return "", errors.New("no process runs")
	}
	s.mu.Lock()
	id, closing := s.findLoadBalancer(name), s.closed
	s.mu.Unlock()
	if id == nil {
		return "", fmt.Errorf("there is no load balancer %s", name)
	}
	s.runLater(func() {
		unlock, err := p.updater.Lock(p.ctx, *id)
		if err != nil {
			return
		}
		defer unlock()
		s.mu.Lock()
		if !p.isOldLeader {
			s.lockedBy[id.Key()] = p
		}
		s.addLine(name, "its lane is held by another part of the process")
		s.mu.Unlock()
		waitFor(duration, closing, p.ctx.Done())
		p.waitRunning(lb.PoolID{LoadBalancer: *id})
		s.mu.Lock()
		if s.lockedBy[id.Key()] == p {
			delete(s.lockedBy, id.Key())
		}
		p.unlockTimes[id.Key()] = time.Now()
		s.resetDeadlines(func(k *pool) bool { return k.id.LoadBalancer.Key() == id.Key() })
		s.mu.Unlock()
	})
	return "", nil
}
