// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"net/http"
	"time"

	"weir.dev/weir/internal/lb"
)

func doSuspend(s *Stage, a *argReader) (string, error) {
	d, err := time.ParseDuration(a.wordArg("duration"))
	if err != nil {
		a.addError("%v", err)
	}
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	p := s.runningProcess()
	if p == nil {
		return "", errors.New("no process runs")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.resumeSignal != nil {
		return "", errors.New("the machine is suspended")
	}
	s.addLine("weir", "its machine is suspended")
	closing := s.closed
	p.freezeUntil(func() { waitFor(d, closing, p.ctx.Done()) }, "its machine goes on")
	return "", nil
}

// waitRunning waits until the machine runs. Time passes during suspension; delayed work resumes at its
// next checkpoint, each worker a little later than the previous one. It reports whether the machine
// was suspended.
func (p *process) waitRunning(id lb.PoolID) (slept bool) {
	s := p.stage
	for ; ; slept = true {
		s.mu.Lock()
		asleep := p.resumeSignal
		s.mu.Unlock()
		if asleep == nil {
			if slept && p.ctx.Err() == nil {
				time.Sleep(s.latencyTo(id.LoadBalancer) / 1000)
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

// waitAllRunning is the same for work shared by all workers.
func (p *process) waitAllRunning() {
	p.waitRunning(lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "none is as far away"}})
}

// waitRequestRunning is the same for a request about to be sent.
func (p *process) waitRequestRunning(req *http.Request) {
	s := p.stage
	s.mu.Lock()
	id := s.requestPool(req).id
	s.mu.Unlock()
	p.waitRunning(id)
}
