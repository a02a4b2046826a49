// SPDX-License-Identifier: Apache-2.0

package service

import (
	"net/netip"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// SecurityRulePrefix is the name prefix of managed rules. It is that of cloud-provider-azure: its rules are taken over
// unchanged.
const SecurityRulePrefix = "k8s-azure-lb_"

// KindSecurityRule is the kind of the changes.
const KindSecurityRule lb.Kind = "security rule"

// AccessRule allows or denies flows to some addresses.
type AccessRule struct {
	Access   lb.Access
	Family   lb.Family
	Protocol string
	// Sources are CIDRs of the family, a service tag, or lb.Any.
	Sources      []string
	Destinations []netip.Addr
	Ports        []string
}

// SecurityPlace is a set of addresses and ports where a Service receives flows; no ports means all.
type SecurityPlace struct {
	Addresses []netip.Addr
	Ports     []int32
}

// SecurityShare is the demand of one Service.
type SecurityShare struct {
	Service string
	// Namespace is the Service's namespace; empty for no limit.
	Namespace   string
	AccessRules []AccessRule
	// Retained are rules that are not needed: their destinations stay where they exist, and are never added.
	Retained []AccessRule
	// Fixed is true if the demand is unknown: nothing changes at its places.
	Fixed bool
	// Limit is set if only the upper bound of the Service's clients is known. The rules of the share are then
	// denials to add, and what the group admits at Places is restricted to the Limit.
	Limit *SecurityLimit
	// Places are where the Service receives flows. Rules of other Services are still added there.
	Places []SecurityPlace
	// NodePorts are the node ports that receive flows.
	NodePorts []int32
}

// SecurityInput is the input of a plan.
type SecurityInput struct {
	// Observed are the rules of the group.
	Observed []lb.SecurityRule
	// Shares are those of all Services, in the order of precedence if capacity is short.
	Shares []SecurityShare
	// Managed are the destinations that belong to this cluster.
	Managed map[netip.Addr]bool
	// Limits returns the limits of a namespace; nil means none.
	Limits func(namespace string) NamespaceSettings
	// Claims are the claims of Services admitted before their load balancer was written. A limit lowered
	// since then does not reject them, because they would be published without rules.
	Claims map[string]SecurityClaim
}

// SecurityPlan is the planned state of a group.
type SecurityPlan struct {
	// Next are all rules, existing ones in observed order.
	Next    []lb.SecurityRule
	Changes []lb.Change
	// Rejected are the rejected Services and the reasons. Nothing changes at their places.
	Rejected map[string]error
	// Before and After are the usage of the observed group and of Next.
	Before, After *SecurityUsage
}

// IsEmpty reports whether there are no changes.
func (p SecurityPlan) IsEmpty() bool { return len(p.Changes) == 0 }

// BuildSecurityPlan computes a plan. A plan for the result of a plan is empty. Clusters may share a group: the input
// lists the destinations of this cluster, and rules of all others remain unchanged, as do those without
// SecurityRulePrefix.
func BuildSecurityPlan(in SecurityInput) SecurityPlan {
	seen, refused := parseGroup(in), map[string]error{}
	var decided map[ruleKey]map[netip.Addr]bool
	in.Shares, decided = applyLimits(in.Shares, seen)
	shares, holders := parseShares(in.Shares), newServiceIndex(in)
	before := usageOf(seen, holders)
	for {
		g := startPlan(seen, shares, refused, decided)
		g.services, g.usage, g.limits = holders, newUsage(), newNamespaceLimits(in, before)
		for _, r := range g.rules {
			g.usage.countRule(r, holders)
		}
		if restart := g.addMissing(shares, refused); !restart {
			next := g.withoutEmpty()
			return SecurityPlan{Next: next, Changes: DiffSecurityRules(in.Observed, next), Rejected: refused, Before: before, After: g.usage}
		}
	}
}

// group is a security group being planned.
type group struct {
	rules []lb.SecurityRule
	// of is the index of the first rule per meaning.
	of map[ruleKey]int
	// existing are the destinations of managed rules per meaning.
	existing map[ruleKey]map[netip.Addr]bool
	// emptied are the meanings of rules retained only for added destinations.
	emptied map[ruleKey]bool
	seen    *parsedGroup
	used    capacity
	taken
	services serviceIndex
	// usage is the usage by namespace, including what was added.
	usage  *SecurityUsage
	limits namespaceLimits
}

// startPlan starts a plan with what remains: destinations of other clusters, desired ones, and those of unknown
// Services unless decided.
func startPlan(seen *parsedGroup, shares []parsedShare, refused map[string]error, decided map[ruleKey]map[netip.Addr]bool) *group {
	g := &group{
		of: map[ruleKey]int{}, existing: map[ruleKey]map[netip.Addr]bool{}, emptied: map[ruleKey]bool{}, seen: seen, taken: newUsedNames(),
	}
	wanted := map[ruleKey]map[netip.Addr]bool{}
	places := fixedPlaces{byAddress: map[netip.Addr][]int{}}
	for _, s := range shares {
		if s.Fixed || refused[s.Service] != nil {
			places.addPlaces(s.Places, seen.managedHosts)
			continue
		}
		if s.Limit != nil {
			places.addPlaces(s.Places, seen.managedHosts)
		}
		for i, a := range s.AccessRules {
			addAddresses(wanted, s.ruleKeys[i], a.Destinations...)
		}
		for _, a := range s.Retained {
			addAddresses(wanted, a.ruleKey(), a.Destinations...)
		}
	}
	for _, o := range seen.rules {
		r := o.SecurityRule
		if o.managed {
			m := o.ruleKey
			covers := places.coverage(r)
			r.Destinations = nil
			for i, a := range o.hosts {
				if a.IsValid() {
					exists := g.existing[m][a]
					addAddresses(g.existing, m, a)
					if exists || !wanted[m][a] && (decided[m][a] || !covers(a)) {
						continue
					}
				}
				r.Destinations = append(r.Destinations, o.Destinations[i])
			}
			_, another := g.of[m]
			if len(r.Destinations) == 0 && (another || len(wanted[m]) == 0) {
				continue
			}
			if !another {
				g.of[m] = len(g.rules)
				g.emptied[m] = len(r.Destinations) == 0
			}
		}
		g.addRule(r)
	}
	return g
}

func (g *group) addRule(r lb.SecurityRule) {
	g.rules = append(g.rules, r)
	g.used.addRule(r)
	g.markUsed(r)
}

func addAddresses(of map[ruleKey]map[netip.Addr]bool, m ruleKey, addresses ...netip.Addr) {
	if of[m] == nil {
		of[m] = map[netip.Addr]bool{}
	}
	for _, a := range addresses {
		of[m][a] = true
	}
}

// addMissing adds what is missing, Service by Service, and rejects those that do not fit. restart is true if a new
// pass is needed because existing rules of a rejected Service were removed.
func (g *group) addMissing(shares []parsedShare, refused map[string]error) (restart bool) {
	for _, s := range shares {
		if s.Fixed || refused[s.Service] != nil {
			continue
		}
		need := g.neededCapacity(s)
		if need == (capacity{}) {
			continue
		}
		if s.Limit != nil && (g.limits.exceededLimit(g.usage, s, g.missingUsage(s)) != nil || g.used.plus(need).exceededLimit() != nil) {
			continue // these clients are denied
		}
		if err := g.limits.exceededLimit(g.usage, s, g.missingUsage(s)); err != nil {
			// The rest of this pass finds other rejections: the rules of this Service leave no room for them.
			refused[s.Service] = err
			restart = restart || g.hasObserved(s)
			continue
		}
		if err := g.used.plus(need).exceededLimit(); err != nil {
			if restart {
				continue // the next pass decides
			}
			refused[s.Service] = err
			if g.hasObserved(s) {
				return true
			}
			continue
		}
		for i, a := range s.AccessRules {
			g.usage.addDestinations(s.ruleKeys[i], countPrefixes(a.Sources), serviceRef{s.Service, s.Namespace}, g.addAccess(a, s.ruleKeys[i]))
		}
	}
	return restart
}

// neededCapacity returns the capacity that the missing rules of a Service need.
func (g *group) neededCapacity(s parsedShare) capacity {
	var need capacity
	counted := map[ruleKey]map[netip.Addr]bool{}
	for i, a := range s.AccessRules {
		m := s.ruleKeys[i]
		for _, d := range a.Destinations {
			if g.existing[m][d] || counted[m][d] {
				continue
			}
			if _, ok := g.of[m]; !ok && counted[m] == nil {
				need.rules++
				need.sources += countPrefixes(a.Sources)
			}
			addAddresses(counted, m, d)
			need.destinations++
		}
	}
	return need
}

// hasObserved reports whether the observed group may have rules of a Service.
func (g *group) hasObserved(s parsedShare) bool {
	for i, a := range s.AccessRules {
		if g.emptied[s.ruleKeys[i]] || g.seen.hasManagedHost(a.Destinations) {
			return true
		}
	}
	return slices.ContainsFunc(s.Places, func(p SecurityPlace) bool { return g.seen.hasManagedHost(p.Addresses) })
}

// addAccess adds the missing destinations of an admission to its rule, or to a new one, and returns their number.
func (g *group) addAccess(a AccessRule, m ruleKey) int {
	var missing []netip.Addr
	for _, d := range a.Destinations {
		if !g.existing[m][d] {
			missing = append(missing, d)
			addAddresses(g.existing, m, d)
		}
	}
	if len(missing) == 0 {
		return 0
	}
	at, ok := g.of[m]
	if !ok {
		at = len(g.rules)
		g.of[m] = at
		g.addRule(g.newRule(a, m))
	}
	r := &g.rules[at]
	r.Destinations = slices.Clone(r.Destinations)
	slices.SortFunc(missing, netip.Addr.Compare)
	for _, d := range missing {
		r.Destinations = append(r.Destinations, d.String())
	}
	g.used.destinations += len(missing)
	return len(missing)
}

// withoutEmpty returns the rules without those retained for a destination that another rule with the same
// meaning has.
func (g *group) withoutEmpty() []lb.SecurityRule {
	empty := map[string]bool{}
	for _, at := range g.of {
		if r := g.rules[at]; len(r.Destinations) == 0 {
			empty[r.Name] = true
		}
	}
	return slices.DeleteFunc(g.rules, func(r lb.SecurityRule) bool { return empty[r.Name] })
}

// DiffSecurityRules returns the changes between two sets of rules.
func DiffSecurityRules(before, after []lb.SecurityRule) []lb.Change {
	oldIndex, newIndex := indexByName(before), indexByName(after)
	var changes []lb.Change
	for _, r := range after {
		switch at, ok := oldIndex[strings.ToLower(r.Name)]; {
		case !ok:
			changes = append(changes, lb.Change{Action: lb.ActionAdd, Kind: KindSecurityRule, Name: r.Name, Is: r})
		case !before[at].Equal(r):
			changes = append(changes, lb.Change{Action: lb.ActionModify, Kind: KindSecurityRule, Name: r.Name, Was: before[at], Is: r})
		}
	}
	for _, r := range before {
		if _, ok := newIndex[strings.ToLower(r.Name)]; !ok {
			changes = append(changes, lb.Change{Action: lb.ActionRemove, Kind: KindSecurityRule, Name: r.Name, Was: r})
		}
	}
	return changes
}

// indexByName maps lower-case names to the index of the first rule.
func indexByName(rules []lb.SecurityRule) map[string]int {
	at := make(map[string]int, len(rules))
	for i, r := range rules {
		name := strings.ToLower(r.Name)
		if _, ok := at[name]; !ok {
			at[name] = i
		}
	}
	return at
}
