// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"time"
)

func doFreeze(s *Stage, a *reader) (string, error) {
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
		return "", errors.New("the process stands still")
	}
	thaw, closing := make(chan struct{}), s.closing
	s.frozen = append(s.frozen, thaw)
	s.trace("weir", "is frozen")
	p.standStill(func() {
		select {
		case <-thaw:
		case <-closing:
		case <-p.ctx.Done():
		}
	}, "goes on")
	return "", nil
}

func doThaw(s *Stage, a *reader) (string, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frozen) == 0 {
		return "", errors.New("no process is frozen")
	}
	for _, thaw := range s.frozen {
		close(thaw)
	}
	s.frozen = nil
	return "", nil
}

// standStill freezes a process until over returns. The caller holds s.mu.
func (p *process) standStill(over func(), goesOn string) {
	s := p.stage
	p.asleep = make(chan struct{})
	s.later(func() {
		over()
		s.mu.Lock()
		close(p.asleep)
		p.asleep, p.woke = nil, time.Now()
		s.excuse(everywhere)
		switch {
		case p.dead:
		case p.former:
			s.trace("weir", "%s goes on", p.name)
		default:
			s.trace("weir", "%s", goesOn)
		}
		s.mu.Unlock()
		p.notice()
	})
	s.standBy(p)
}
