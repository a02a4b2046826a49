// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
	"weir.dev/weir/internal/plan"
)

// contested returns the owners of rules that another controller keeps changing after Weir's writes. Each write
// includes all served Services, so all of them are checked.
func (g *Group) contested(due []*Request, s survey, p nsg.Plan, observed []lb.SecurityRule) map[string]bool {
	touched := slices.DeleteFunc(slices.Clone(p.Changes), func(c plan.Change) bool { return !g.touched(c, observed) })
	stay := map[string]bool{}
	all := g.demands(due)
	for _, owner := range slices.Sorted(maps.Keys(all)) {
		of := all[owner]
		if p.Refused[owner] != nil {
			continue
		}
		at := s.places(of)
		for _, a := range g.admissions(s.naming.lawful(of)) {
			at = append(at, a.Destinations...)
		}
		stay[owner] = g.cfg.Contests.Leave(contest.SecurityGroup, of.Service, of.asked(), g.name(), differingAt(at, touched), time.Now())
	}
	maps.DeleteFunc(stay, func(_ string, stays bool) bool { return !stays })
	return stay
}

// touched reports whether a rule that must change was modified since the last write; node changes also modify
// rules.
func (g *Group) touched(c plan.Change, observed []lb.SecurityRule) bool {
	if g.left == nil {
		return false
	}
	find := func(rules []lb.SecurityRule) int {
		return slices.IndexFunc(rules, func(r lb.SecurityRule) bool { return strings.EqualFold(r.Name, c.Name) })
	}
	was, is := find(g.left), find(observed)
	return (was < 0) != (is < 0) || was >= 0 && !g.left[was].Same(observed[is])
}

// differingAt returns the changes that affect these addresses.
func differingAt(at []netip.Addr, changes []plan.Change) []contest.Undone {
	var all []contest.Undone
	for _, c := range changes {
		if concerns(c, at) {
			all = append(all, contest.UndoneBy(c))
		}
	}
	return all
}

// shown records that the group has the desired rules, and sets the conflicts of the due requests.
func (g *Group) shown(due []*Request, p nsg.Plan) {
	for owner, of := range g.demands(nil) {
		if p.Refused[owner] == nil {
			g.cfg.Contests.Shown(contest.SecurityGroup, of.Service)
		}
	}
	for _, r := range due {
		r.Contest = g.cfg.Contests.Shown(contest.SecurityGroup, r.Service)
	}
}
