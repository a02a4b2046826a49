// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/cli/explain"
)

// maxNodesPerStep limits the nodes of each state in a chain; the table below has all of them.
const maxNodesPerStep = 8

// chainStep is a frontend, rule, pool, or group of nodes.
type chainStep struct {
	What string
	Is   string // worst state of its items
	Of   []chainItem
}

type chainItem struct {
	Name, Note string
	// Is is its state, used as CSS class and text.
	Is   string
	Link string
}

func newChain(s *detailPage, t poolDetails) []chainStep {
	var way []chainStep
	if v := s.Service; v != nil {
		way = append(way, frontendStep(v.Addresses), ruleStep(v))
	}
	if v := s.Gateway; v != nil {
		way = append(way, frontendStep(v.Addresses), listenerStep(v))
	}
	way = append(way, chainStep{What: "Pool", Is: t.Is, Of: []chainItem{{Name: t.Pool.Pool, Note: "of load balancer " + t.LoadBalancer + ", " + t.State, Is: t.Is, Link: objectURL("BackendPool", t.Namespace, t.Name)}}})
	return append(way, nodeStep(t))
}

func frontendStep(addresses []string) chainStep {
	s := chainStep{What: "Frontend", Is: stateInSync}
	for _, a := range addresses {
		s.Of = append(s.Of, chainItem{Name: a, Is: stateInSync})
	}
	if len(s.Of) == 0 {
		return chainStep{What: s.What, Is: stateUpdating, Of: []chainItem{{Name: "no address yet", Is: stateUpdating}}}
	}
	return s
}

func ruleStep(v *explain.Service) chainStep {
	s := chainStep{What: "Rules", Is: stateInSync}
	for _, p := range v.Ports {
		item := chainItem{Name: fmt.Sprintf("%s %d", p.Protocol, p.Port), Note: p.Name, Is: stateInSync}
		if p.Error != "" {
			item.Is, item.Note, s.Is = stateFailed, p.Error, stateFailed
		}
		s.Of = append(s.Of, item)
	}
	return s
}

func listenerStep(v *explain.Gateway) chainStep {
	s := chainStep{What: "Rules", Is: stateInSync}
	for _, l := range v.Listeners {
		item := chainItem{Name: fmt.Sprintf("%s %d", l.Protocol, l.Port), Note: l.Name, Is: stateInSync}
		switch {
		case l.Error != "":
			item.Is, s.Is = stateFailed, stateFailed
		case l.Routes == 0:
			item.Is, item.Note = stateUnknown, l.Name+", without a route"
		}
		s.Of = append(s.Of, item)
	}
	return s
}

func nodeStep(t poolDetails) chainStep {
	s := chainStep{What: "Nodes", Is: stateInSync}
	by := map[string][]explain.Member{}
	for _, m := range t.Members {
		by[m.Is] = append(by[m.Is], m)
	}
	for _, state := range []string{explain.InPool, explain.Down, explain.Missing, explain.Leaving, explain.LeftOut, explain.Foreign} {
		of := by[state]
		if len(of) == 0 {
			continue
		}
		if state != explain.InPool {
			s.Is = stateFailed
		}
		for _, m := range of[:min(len(of), maxNodesPerStep)] {
			item := chainItem{Name: m.Node, Is: strings.ToLower(state)}
			if item.Link = objectURL("Node", "", m.Node); m.Node == "" {
				item.Name, item.Link = m.Address, ""
			}
			if state != explain.InPool {
				item.Note = state
			}
			s.Of = append(s.Of, item)
		}
		if more := len(of) - maxNodesPerStep; more > 0 {
			s.Of = append(s.Of, chainItem{Name: fmt.Sprintf("%d more", more), Note: state, Is: strings.ToLower(state)})
		}
	}
	if len(s.Of) == 0 {
		s.Of = []chainItem{{Name: "none", Is: stateUpdating}}
	}
	return s
}
