// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"weir.dev/weir/internal/pool/membership"
)

func doExclude(s *Stage, a *argReader) (string, error) {
	reason := "it is labelled"
	if a.flagArg("end") {
		reason = ""
	}
	name := a.wordArg("node")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.mu.Lock()
	for _, nodes := range []map[string]membership.Node{s.cluster.nodes, s.cluster.lostNodes} {
		if n, ok := nodes[name]; ok {
			n.Excluded = reason
			nodes[name] = n
			s.mu.Unlock()
			s.notifyChange(object{"Node", name})
			return "", nil
		}
	}
	s.mu.Unlock()
	return "", fmt.Errorf("there is no node %s", name)
}
