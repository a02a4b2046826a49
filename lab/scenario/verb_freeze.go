// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"time"
)

func doFreeze(s *Stage, a *argReader) (string, error) {
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
		return "", errors.New("the process stands still")
	}
	thaw, closing := make(chan struct{}), s.closed
	s.frozenUntil = append(s.frozenUntil, thaw)
	s.addLine("weir", "is frozen")
	p.freezeUntil(func() {
		select {
		case <-thaw:
		case <-closing:
		case <-p.ctx.Done():
		}
	}, "goes on")
	return "", nil
}

func doThaw(s *Stage, a *argReader) (string, error) {
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.frozenUntil) == 0 {
		return "", errors.New("no process is frozen")
	}
	for _, thaw := range s.frozenUntil {
		close(thaw)
	}
	s.frozenUntil = nil
	return "", nil
}

// freezeUntil freezes a process until over returns. The caller holds s.mu.
func (p *process) freezeUntil(over func(), goesOn string) {
	s := p.stage
	p.resumeSignal = make(chan struct{})
	s.runLater(func() {
		over()
		s.mu.Lock()
		close(p.resumeSignal)
		p.resumeSignal, p.resumeTime = nil, time.Now()
		s.resetDeadlines(anyPool)
		switch {
		case p.killed:
		case p.isOldLeader:
			s.addLine("weir", "%s goes on", p.name)
		default:
			s.addLine("weir", "%s", goesOn)
		}
		s.mu.Unlock()
		p.checkLeadership()
	})
	s.electStandby(p)
}
