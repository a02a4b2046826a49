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
	What  string
	Class string // worst state of its items
	Items []chainItem
}

type chainItem struct {
	Name, Note string
	// Is is its state, used as CSS class and text.
	Class string
	Link  string
}

func newChain(s *detailPage, t poolDetails) []chainStep {
	var way []chainStep
	if v := s.Service; v != nil {
		way = append(way, frontendStep(v.Addresses), ruleStep(v))
	}
	if v := s.Gateway; v != nil {
		way = append(way, frontendStep(v.Addresses), listenerStep(v))
	}
	way = append(way, chainStep{What: "Pool", Class: t.Class, Items: []chainItem{{Name: t.Pool.Pool, Note: "of load balancer " + t.LoadBalancer + ", " + t.State, Class: t.Class, Link: objectURL("BackendPool", t.Namespace, t.Name)}}})
	return append(way, nodeStep(t))
}

func frontendStep(addresses []string) chainStep {
	s := chainStep{What: "Frontend", Class: stateInSync}
	for _, a := range addresses {
		s.Items = append(s.Items, chainItem{Name: a, Class: stateInSync})
	}
	if len(s.Items) == 0 {
		return chainStep{What: s.What, Class: stateUpdating, Items: []chainItem{{Name: "no address yet", Class: stateUpdating}}}
	}
	return s
}

func ruleStep(v *explain.Service) chainStep {
	s := chainStep{What: "Rules", Class: stateInSync}
	for _, p := range v.Ports {
		item := chainItem{Name: fmt.Sprintf("%s %d", p.Protocol, p.Port), Note: p.Name, Class: stateInSync}
		if p.Error != "" {
			item.Class, item.Note, s.Class = stateFailed, p.Error, stateFailed
		}
		s.Items = append(s.Items, item)
	}
	return s
}

func listenerStep(v *explain.Gateway) chainStep {
	s := chainStep{What: "Rules", Class: stateInSync}
	for _, l := range v.Listeners {
		item := chainItem{Name: fmt.Sprintf("%s %d", l.Protocol, l.Port), Note: l.Name, Class: stateInSync}
		switch {
		case l.Error != "":
			item.Class, s.Class = stateFailed, stateFailed
		case l.Routes == 0:
			item.Class, item.Note = stateUnknown, l.Name+", without a route"
		}
		s.Items = append(s.Items, item)
	}
	return s
}

func nodeStep(t poolDetails) chainStep {
	s := chainStep{What: "Nodes", Class: stateInSync}
	by := map[string][]explain.Member{}
	for _, m := range t.Members {
		by[m.State] = append(by[m.State], m)
	}
	for _, state := range []string{explain.InPool, explain.Down, explain.Missing, explain.Leaving, explain.LeftOut, explain.Foreign} {
		of := by[state]
		if len(of) == 0 {
			continue
		}
		if state != explain.InPool {
			s.Class = stateFailed
		}
		for _, m := range of[:min(len(of), maxNodesPerStep)] {
			item := chainItem{Name: m.Node, Class: strings.ToLower(state)}
			if item.Link = objectURL("Node", "", m.Node); m.Node == "" {
				item.Name, item.Link = m.Address, ""
			}
			if state != explain.InPool {
				item.Note = state
			}
			s.Items = append(s.Items, item)
		}
		if more := len(of) - maxNodesPerStep; more > 0 {
			s.Items = append(s.Items, chainItem{Name: fmt.Sprintf("%d more", more), Note: state, Class: strings.ToLower(state)})
		}
	}
	if len(s.Items) == 0 {
		s.Items = []chainItem{{Name: "none", Class: stateUpdating}}
	}
	return s
}
