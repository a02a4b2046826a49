// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"slices"
)

func doRestart(s *Stage, a *reader) (string, error) {
	dead := a.flag("dead")
	if err := a.err(); err != nil {
		return "", err
	}
	if dead && s.alive() != nil {
		return "", nil
	}
	return "", s.restart()
}

// restart kills the running process, if any, and starts the next.
func (s *Stage) restart() error {
	s.stop("for a restart")
	return s.begin()
}

// begin starts a process, which lists the cluster and reads all pools.
func (s *Stage) begin() error {
	if err := s.launch(); err != nil {
		return err
	}
	s.mu.Lock()
	p := s.process
	var all []*binding
	for _, name := range slices.Sorted(maps.Keys(s.cluster.bindings)) {
		all = append(all, s.cluster.bindings[name])
	}
	s.mu.Unlock()
	for _, b := range all {
		p.reconcile(b, false)
	}
	return nil
}
