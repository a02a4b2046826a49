// SPDX-License-Identifier: Apache-2.0

package scenario

import "fmt"

func doScale(s *Stage, a *argReader) (string, error) {
	nodes, services := a.listArg("nodes"), a.wordArgs()
	if err := a.joinErrors(); err != nil {
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
		s.cluster.services[name] = newService(name, nodes)
	}
	s.mu.Unlock()
	s.notifyChange(newObjects("Service", services)...)
	return "", nil
}
