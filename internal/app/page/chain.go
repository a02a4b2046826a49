// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"

	"weir.dev/weir/internal/app/explain"
)

// shownOfStep limits the nodes of each state in a chain; the table below has all of them.
const shownOfStep = 8

// step is a frontend, rule, pool, or group of nodes.
type step struct {
	What string
	Is   string // worst state of its items
	Of   []item
}

type item struct {
	Name, Note string
	// Is is its state, used as CSS class and text.
	Is   string
	Link string
}

func chainOf(s *story, t told) []step {
	var way []step
	if v := s.Service; v != nil {
		way = append(way, frontends(v), rules(v))
	}
	way = append(way, step{What: "Pool", Is: t.Is, Of: []item{{Name: t.Pool.Pool, Note: "of load balancer " + t.LoadBalancer + ", " + t.State, Is: t.Is, Link: link("BackendPool", t.Namespace, t.Name)}}})
	return append(way, nodesOf(t))
}

func frontends(v *explain.Service) step {
	s := step{What: "Frontend", Is: isLevel}
	for _, a := range v.Addresses {
		s.Of = append(s.Of, item{Name: a, Is: isLevel})
	}
	if len(s.Of) == 0 {
		return step{What: s.What, Is: isUnderWay, Of: []item{{Name: "no address yet", Is: isUnderWay}}}
	}
	return s
}

func rules(v *explain.Service) step {
	s := step{What: "Rules", Is: isLevel}
	for _, p := range v.Ports {
		one := item{Name: fmt.Sprintf("%s %d", p.Protocol, p.Port), Note: p.Name, Is: isLevel}
		if p.Error != "" {
			one.Is, one.Note, s.Is = isWrong, p.Error, isWrong
		}
		s.Of = append(s.Of, one)
	}
	return s
}

func nodesOf(t told) step {
	s := step{What: "Nodes", Is: isLevel}
	by := map[string][]explain.Member{}
	for _, m := range t.Members {
		by[m.Is] = append(by[m.Is], m)
	}
	for _, is := range []string{explain.InPool, explain.Down, explain.Missing, explain.Leaving, explain.LeftOut, explain.Foreign} {
		of := by[is]
		if len(of) == 0 {
			continue
		}
		if is != explain.InPool {
			s.Is = isWrong
		}
		for _, m := range of[:min(len(of), shownOfStep)] {
			one := item{Name: m.Node, Is: strings.ToLower(is)}
			if one.Link = link("Node", "", m.Node); m.Node == "" {
				one.Name, one.Link = m.Address, ""
			}
			if is != explain.InPool {
				one.Note = is
			}
			s.Of = append(s.Of, one)
		}
		if more := len(of) - shownOfStep; more > 0 {
			s.Of = append(s.Of, item{Name: fmt.Sprintf("%d more", more), Note: is, Is: strings.ToLower(is)})
		}
	}
	if len(s.Of) == 0 {
		s.Of = []item{{Name: "none", Is: isUnderWay}}
	}
	return s
}
