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
		v := s.cluster.services[name]
		if v == nil {
			s.mu.Unlock()
			return "", fmt.Errorf("there is no Service %s", name)
		}
		v.place(nodes)
	}
	s.mu.Unlock()
	s.changed(services...)
	return "", nil
}
