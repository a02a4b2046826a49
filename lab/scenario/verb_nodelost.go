// SPDX-License-Identifier: Apache-2.0

package scenario

import "fmt"

func doNodeLost(s *Stage, a *argReader) (string, error) {
	back := a.flagArg("back")
	name := a.wordArg("node")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.mu.Lock()
	from, into := s.cluster.nodes, s.cluster.lostNodes
	if back {
		from, into = into, from
	}
	n, ok := from[name]
	if !ok {
		s.mu.Unlock()
		return "", fmt.Errorf("there is no node %s", name)
	}
	delete(from, name)
	into[name] = n
	s.mu.Unlock()
	s.notifyChange(object{"Node", name})
	return "", nil
}
