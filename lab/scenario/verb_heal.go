// SPDX-License-Identifier: Apache-2.0

package scenario

func doHeal(s *Stage, a *argReader) (string, error) {
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.cancelDelays()
	s.mu.Lock()
	s.closed, s.staleWrites, s.outages, s.statusErrors, s.frozenUntil = make(chan struct{}), nil, nil, statusErrors{}, nil
	s.lease.resetErrors()
	if s.process != nil {
		s.process.killAt = nil
	}
	s.mu.Unlock()
	s.endDelays()
	return "", s.resetAll()
}
