// SPDX-License-Identifier: Apache-2.0

package securitygroup

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// findConflicts returns the owners of rules that another controller keeps changing after Weir's writes. Each write
// includes all served Services, so all of them are checked.
func (g *Group) findConflicts(due []*Request, s planInput, p service.SecurityPlan, observed []lb.SecurityRule) map[string]bool {
	affected := slices.DeleteFunc(slices.Clone(p.Changes), func(c lb.Change) bool { return !g.isExternallyChanged(c, observed) })
	stay := map[string]bool{}
	demands := g.knownDemands(due)
	for _, owner := range slices.Sorted(maps.Keys(demands)) {
		of := demands[owner]
		if p.Rejected[owner] != nil {
			continue
		}
		at := s.allAddresses(of)
		for _, a := range g.accessRules(s.owners.filterDemand(of)) {
			at = append(at, a.Destinations...)
		}
		stay[owner] = g.cfg.Conflicts.RecordReverts(conflict.SecurityGroup, of.Service, of.desiredKey(), g.displayName(), changesAt(at, affected), time.Now())
	}
	maps.DeleteFunc(stay, func(_ string, stays bool) bool { return !stays })
	return stay
}

// isExternallyChanged reports whether a rule that must change was modified since the last write; node changes also modify
// rules.
func (g *Group) isExternallyChanged(c lb.Change, observed []lb.SecurityRule) bool {
	if g.lastRules == nil {
		return false
	}
	find := func(rules []lb.SecurityRule) int {
		return slices.IndexFunc(rules, func(r lb.SecurityRule) bool { return strings.EqualFold(r.Name, c.Name) })
	}
	before, after := find(g.lastRules), find(observed)
	return (before < 0) != (after < 0) || before >= 0 && !g.lastRules[before].Equal(observed[after])
}

// changesAt returns the changes that affect these addresses.
func changesAt(at []netip.Addr, changes []lb.Change) []conflict.RevertedPart {
	var parts []conflict.RevertedPart
	for _, c := range changes {
		if affectsAddresses(c, at) {
			parts = append(parts, conflict.NewRevertedPart(c))
		}
	}
	return parts
}

// recordConflicts records that the group has the desired rules, and sets the conflicts of the due requests.
func (g *Group) recordConflicts(due []*Request, p service.SecurityPlan) {
	for owner, of := range g.knownDemands(nil) {
		if p.Rejected[owner] == nil {
			g.cfg.Conflicts.RecordMatch(conflict.SecurityGroup, of.Service)
		}
	}
	for _, r := range due {
		r.Conflict = g.cfg.Conflicts.RecordMatch(conflict.SecurityGroup, r.Service)
	}
}
