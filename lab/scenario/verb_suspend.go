// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"net/http"
	"time"

	"weir.dev/weir/internal/lb"
)

func doSuspend(s *Stage, a *reader) (string, error) {
	d, err := time.ParseDuration(a.word("duration"))
	if err != nil {
		a.complain("%v", err)
	}
	if err := a.err(); err != nil {
		return "", err
	}
	p := s.alive()
	if p == nil {
		return "", errors.New("no process runs")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.asleep != nil {
		return "", errors.New("the machine is suspended")
	}
	s.trace("weir", "its machine is suspended")
	closing := s.closing
	p.standStill(func() { waited(d, closing, p.ctx.Done()) }, "its machine goes on")
	return "", nil
}

// awake waits until the machine runs. Time passes during suspension; delayed work resumes at its
// next checkpoint, each worker a little later than the previous one. It reports whether the machine
// was suspended.
func (p *process) awake(id lb.PoolID) (slept bool) {
	s := p.stage
	for ; ; slept = true {
		s.mu.Lock()
		asleep := p.asleep
		s.mu.Unlock()
		if asleep == nil {
			if slept && p.ctx.Err() == nil {
				time.Sleep(s.distance(id.LoadBalancer) / 1000)
			}
			return slept
		}
		select {
		case <-asleep:
		case <-p.ctx.Done():
			return true
		}
	}
}

// awakeLast is awake for work shared by all workers.
func (p *process) awakeLast() {
	p.awake(lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "none is as far away"}})
}

// awakeFor is awake for a request about to be sent.
func (p *process) awakeFor(req *http.Request) {
	s := p.stage
	s.mu.Lock()
	id := s.poolOf(req).id
	s.mu.Unlock()
	p.awake(id)
}
