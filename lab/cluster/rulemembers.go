// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// recordRuleMembers records rules that lost all their members. It runs at each response to a process.
func (s *Stage) recordRuleMembers() {
	if !s.opts.CheckRuleMembers {
		return
	}
	s.ruleMembersMu.Lock() // an older snapshot must not overwrite a newer one
	defer s.ruleMembersMu.Unlock()
	c, err := s.readAzure()
	if err != nil {
		s.addViolation("watching: %v", err)
		return
	}
	fed := map[string]string{}
	var starved []string
	for _, b := range c.balancers {
		members := map[string]int{}
		for _, p := range b.Properties.Pools {
			members[p.Name] = len(p.Properties.Addresses)
		}
		for _, r := range b.Properties.Rules {
			name, to := b.Name+"/"+r.Name, r.Properties.Pool.lastSegment()
			switch {
			case members[to] > 0:
				fed[name] = to
			case s.ruleMembers[name] != "":
				starved = append(starved, name+" has no members any more in "+to+", and had some in "+s.ruleMembers[name])
			}
		}
	}
	s.ruleMembers = fed
	for _, rule := range starved {
		s.addViolation("rule %s", rule)
	}
}

// checkMemberTypes checks that the node pools used by rules hold the member type of azure.json, and that no
// interim pool of a conversion is left.
func (s *Stage) checkMemberTypes(c azureState) []error {
	var errs []error
	for _, b := range c.balancers {
		if slices.ContainsFunc(b.Properties.Pools, func(p pool) bool { // a pool with foreign members keeps its type
			return slices.ContainsFunc(p.Properties.Addresses, func(m member) bool { return s.isForeign(b.Name+"/"+p.Name, m.Properties.IP) })
		}) {
			continue
		}
		for _, p := range b.Properties.Pools {
			at := b.Name + "/" + p.Name
			if strings.Contains(p.Name, "_addresses") {
				errs = append(errs, fmt.Errorf("pool %s is left", at))
			}
			named := slices.ContainsFunc(b.Properties.Rules, func(r rule) bool { return r.Properties.Pool.lastSegment() == p.Name })
			if !named || !strings.EqualFold(p.Name, clusterName) && !strings.EqualFold(p.Name, clusterName+"-IPv6") {
				continue
			}
			if slices.ContainsFunc(p.Properties.Addresses, func(m member) bool {
				return (m.Properties.Interface != nil) != s.hasInterfaces()
			}) {
				errs = append(errs, fmt.Errorf("pool %s has members of the other kind", at))
			}
		}
	}
	return errs
}
