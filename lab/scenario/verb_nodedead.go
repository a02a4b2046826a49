// SPDX-License-Identifier: Apache-2.0

package scenario

import "fmt"

func doNodeDead(s *Stage, a *reader) (string, error) {
	back := a.flag("back")
	name := a.word("node")
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	n, ok := s.cluster.nodes[name]
	if !ok {
		n, ok = s.cluster.lost[name]
	}
	s.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("there is no node %s", name)
	}
	for _, ip := range n.IPs {
		s.emu.SetAlive(ip, back)
	}
	return "", nil
}
