// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"slices"
)

func doRestart(s *Stage, a *argReader) (string, error) {
	dead := a.flagArg("dead")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	if dead && s.runningProcess() != nil {
		return "", nil
	}
	return "", s.restartProcess()
}

// restartProcess kills the running process, if any, and starts the next.
func (s *Stage) restartProcess() error {
	s.stopProcess("for a restart")
	return s.startFirst()
}

// startFirst starts a process, which lists the cluster and reads all pools.
func (s *Stage) startFirst() error {
	if err := s.startProcess(); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.process
	var pools []*backendPool
	for _, name := range slices.Sorted(maps.Keys(s.cluster.bindings)) {
		pools = append(pools, s.cluster.bindings[name])
	}
	s.mu.Unlock()
	for _, b := range pools {
		p.reconcilePool(b, false)
	}
	return nil
}
