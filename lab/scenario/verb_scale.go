// SPDX-License-Identifier: Apache-2.0

package scenario

import "fmt"

func doScale(s *Stage, a *reader) (string, error) {
	nodes, services := a.list("nodes"), a.words()
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	for _, name := range services {
		if s.cluster.services[name] == nil {
			s.mu.Unlock()
			return "", fmt.Errorf("there is no Service %s", name)
		}
	}
	for _, name := range services {
		s.cluster.services[name] = placed(name, nodes)
	}
	s.mu.Unlock()
	s.changed(named("Service", services)...)
	return "", nil
}
