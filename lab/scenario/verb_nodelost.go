// SPDX-License-Identifier: Apache-2.0

package scenario

import "fmt"

func doNodeLost(s *Stage, a *reader) (string, error) {
	back := a.flag("back")
	name := a.word("node")
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	from, into := s.cluster.nodes, s.cluster.lost
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
	s.changed(object{"Node", name})
	return "", nil
}
