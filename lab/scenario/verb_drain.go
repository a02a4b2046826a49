// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"slices"

	"weir.dev/weir/internal/pool/membership"
)

func doDrain(s *Stage, a *argReader) (string, error) {
	to, serving := a.textArg("to", ""), a.flagArg("serving")
	node := a.wordArg("node")
	if err := a.joinErrors(); err != nil {
		return "", err
	}
	s.notifyChange(newObjects("Service", s.moveEndpoints(node, to, serving))...)
	return "", nil
}

// moveEndpoints moves the endpoints off a node and returns the affected Services.
func (s *Stage) moveEndpoints(node, to string, serving bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var touched []string
	for _, name := range slices.Sorted(maps.Keys(s.cluster.services)) {
		v := s.cluster.services[name]
		var remaining, moved []membership.Endpoint
		for _, e := range v.endpoints {
			if e.Node != node {
				remaining = append(remaining, e)
				continue
			}
			if serving {
				remaining = append(remaining, membership.Endpoint{Node: node, Serving: true, Terminating: true})
			}
			if to != "" {
				moved = append(moved, membership.Endpoint{Node: to, Ready: true, Serving: true})
			}
		}
		if v.hasEndpointOn(node) {
			touched = append(touched, name)
			s.cluster.services[name] = &service{name: name, endpoints: slices.Concat(remaining, moved)}
		}
	}
	return touched
}
