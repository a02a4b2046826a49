// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"slices"

	"weir.dev/weir/internal/membership"
)

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
	var touched []string
	for _, service := range slices.Sorted(maps.Keys(s.cluster.services)) {
		if slices.ContainsFunc(s.cluster.services[service].endpoints, func(e membership.Endpoint) bool { return e.Node == name }) {
			touched = append(touched, service)
		}
	}
	s.mu.Unlock()
	s.changed(touched...)
	return "", nil
}
