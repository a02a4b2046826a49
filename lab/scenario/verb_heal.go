// SPDX-License-Identifier: Apache-2.0

package scenario

func doHeal(s *Stage, a *reader) (string, error) {
	if err := a.err(); err != nil {
		return "", err
	}
	s.sendHome()
	s.mu.Lock()
	s.closing, s.late, s.outage, s.ledger, s.frozen = make(chan struct{}), nil, nil, ledgerFaults{}, nil
	s.lease.free()
	if s.process != nil {
		s.process.kill = nil
	}
	s.mu.Unlock()
	s.relist()
	return "", s.heal()
}
