// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	"weir.dev/weir/internal/membership"
)

func doExclude(s *Stage, a *reader) (string, error) {
	why := "it is labelled"
	if a.flag("end") {
		why = ""
	}
	name := a.word("node")
	if err := a.err(); err != nil {
		return "", err
	}
	s.mu.Lock()
	for _, nodes := range []map[string]membership.Node{s.cluster.nodes, s.cluster.lost} {
		if n, ok := nodes[name]; ok {
			n.Excluded = why
			nodes[name] = n
			s.mu.Unlock()
			s.changed(object{"Node", name})
			return "", nil
		}
	}
	s.mu.Unlock()
	return "", fmt.Errorf("there is no node %s", name)
}
