// SPDX-License-Identifier: Apache-2.0

package scenario

import "fmt"

func doNodeDead(s *Stage, a *argReader) (string, error) {
	back := a.flagArg("back")
	name := a.wordArg("node")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.mu.Lock()
	n, ok := s.cluster.nodes[name]
	if !ok {
		n, ok = s.cluster.lostNodes[name]
	}
	s.mu.Unlock()
	if !ok {
		return "", fmt.Errorf("there is no node %s", name)
	}
	for _, ip := range n.IPs {
		s.emulator.SetAlive(ip, back)
	}
	return "", nil
}
