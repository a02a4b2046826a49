// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// rejectServices returns the rejected Services, by owner, with the reason. All Services in the plan release their rules
// first, so that they can swap ports; a rejected one retains its rules, which may conflict with others. So a
// Service never loses a port it has, and the first Service that wants a free port gets it. Services over the
// bound of their namespace are rejected first and never cause a rejection in another namespace.
func rejectServices(in Input) map[string]error {
	d, exceeding, turn := newAdmission(in), OverLimit(in), map[string]int{}
	rejected := maps.Clone(exceeding)
	for repeat := true; repeat; {
		repeat = d.checkServices(rejected, func(owner string, err error) (restart bool) {
			rejected[owner], turn[owner] = err, len(turn)
			return d.ruleCount[owner] > 0
		})
	}
	for range maxReadmissions { // some may fit by now
		freed := false
		for i, s := range in.Services {
			reason := rejected[s.Owner]
			if reason == nil || exceeding[s.Owner] != nil || !freed && !d.hasNewRoom(i, turn) {
				continue
			}
			delete(rejected, s.Owner)
			fits := true
			d.checkServices(rejected, func(string, error) bool { fits = false; return true })
			if !fits {
				rejected[s.Owner] = reason
				continue
			}
			freed = true
		}
		if !freed {
			break
		}
		d.isRetried = true
	}
	return rejected
}

// maxReadmissions limits how often rejected Services are checked again. Any that would fit later are accepted in the next plan.
const maxReadmissions = 8

type placedRule struct {
	lb.Rule
	place string
}

type admission struct {
	Input
	places        map[string]string
	owners        []string
	ruleCount     map[string]int
	poolErrors    map[string]error
	observedRules map[string][]placedRule
	frontends     map[string][]string
	usage         *usageTable
	machinePools  map[string][]string
	isRetried     bool
}

func newAdmission(in Input) *admission {
	d := &admission{Input: in, places: map[string]string{}, ruleCount: map[string]int{}, poolErrors: map[string]error{}, observedRules: map[string][]placedRule{}, frontends: map[string][]string{}, machinePools: machinePools(in.Observed.Pools)}
	for _, f := range in.Observed.Frontends {
		at := placeOf(f)
		d.places[strings.ToLower(f.Name)] = at
		d.frontends[at] = append(d.frontends[at], f.Name)
	}
	services := indexServices(in.Services)
	for _, r := range in.Observed.Rules {
		owner := services.ownerOf(r.Name)
		d.owners = append(d.owners, owner)
		if owner != "" {
			d.ruleCount[owner]++
		}
		at := d.places[strings.ToLower(r.Frontend)]
		d.observedRules[at] = append(d.observedRules[at], placedRule{r, at})
	}
	for _, s := range in.Services {
		if err := in.checkForeignPool(s); err != nil {
			d.poolErrors[s.Owner] = err
		}
	}
	return d
}

// hasNewRoom reports whether a Service of higher precedence was rejected, so that this one may fit now.
func (a *admission) hasNewRoom(i int, turn map[string]int) bool {
	return a.isRetried || slices.ContainsFunc(a.Services[:i], func(s ServiceParts) bool {
		at, rejected := turn[s.Owner]
		return rejected && at > turn[a.Services[i].Owner]
	})
}

// checkServices calls unfit for each Service that does not fit, in order, until unfit returns true; rejected Services
// count with their observed rules. It reports whether unfit stopped it.
func (a *admission) checkServices(rejected map[string]error, unfit func(owner string, err error) (stop bool)) (stopped bool) {
	accepted := newRuleIndex()
	accepted.machinePools = a.machinePools
	for i, r := range a.Observed.Rules {
		if owner := a.owners[i]; owner == "" || rejected[owner] != nil {
			accepted.addRule(placedRule{r, a.places[strings.ToLower(r.Frontend)]})
		}
	}
	reserved := 0
	for _, s := range a.Services {
		if rejected[s.Owner] == nil {
			reserved += min(len(s.Rules), a.ruleCount[s.Owner])
		}
	}
	for _, s := range a.Services {
		if rejected[s.Owner] != nil {
			continue
		}
		reserved -= min(len(s.Rules), a.ruleCount[s.Owner])
		if err := a.checkService(s, accepted, reserved); err != nil {
			if unfit(s.Owner, err) {
				return true
			}
			continue
		}
		for _, r := range s.placedRules() {
			accepted.addRule(r)
		}
		for _, f := range s.Frontends {
			at := placeOf(f)
			accepted.frontends[at] = append(accepted.frontends[at], f.Name)
		}
	}
	return false
}

// checkService returns why a Service does not fit with the accepted rules and those reserved for later Services, or
// nil.
func (a *admission) checkService(s ServiceParts, accepted *ruleIndex, reserved int) error {
	if err := a.checkPoolName(s, accepted); err != nil {
		return err
	}
	if err := a.poolErrors[s.Owner]; err != nil {
		return err
	}
	if err := a.checkNamespace(s, accepted); err != nil {
		return err
	}
	if err := a.checkGatewayLoadBalancer(s, accepted); err != nil {
		return err
	}
	desired := s.placedRules()
	if n := len(accepted.all) + reserved + len(desired); a.MaxRules > 0 && n > a.MaxRules && len(s.Rules) > a.ruleCount[s.Owner] {
		return fmt.Errorf("load balancer %s would have %d rules, and may have %d%s", a.Observed.ID.Name, n, a.MaxRules, a.largestHolder(s))
	}
	for _, r := range desired {
		if err := a.checkPortConflict(accepted, r); err != nil {
			return err
		}
	}
	return nil
}

// largestHolder returns the namespace with the most rules; empty if it is the Service's own.
func (a *admission) largestHolder(s ServiceParts) string {
	if a.usage == nil {
		a.usage = newUsageTable(a.Input)
	}
	return a.usage.largestNamespace(a.limitKinds()[0], a.usage.byOwner[s.Owner])
}

func (s ServiceParts) placedRules() []placedRule {
	rules := make([]placedRule, 0, len(s.Rules))
	for _, f := range s.Frontends {
		at := placeOf(f)
		for _, r := range s.Rules {
			if r.Frontend == f.Name {
				rules = append(rules, placedRule{r, at})
			}
		}
	}
	return rules
}

// isOwnPool reports whether a pool is a dedicated one of the Service. The pool of all nodes may have the same name: the
// Service then uses that.
func (in Input) isOwnPool(s ServiceParts, name string) bool {
	return containsName(s.DedicatedPools, name) && !containsName(in.SharedPools, name)
}

// checkPoolName rejects an own pool if another Service has one of the same name: their members would mix.
func (in Input) checkPoolName(s ServiceParts, accepted *ruleIndex) error {
	for _, p := range s.Pools {
		if !in.isOwnPool(s, p.ID.Name) {
			continue
		}
		for _, at := range accepted.byPool[strings.ToLower(p.ID.Name)] {
			other := accepted.all[at]
			switch {
			case hasOwner(s.Owner, other.Name):
			case in.ServiceOf != nil && in.ServiceOf(other.Name) == "":
				return fmt.Errorf("%w: rule %s sends flows to pool %s, and belongs to no Service of this cluster. Delete that rule if its Service no longer exists, "+
					"or rename the Service or its namespace", ErrPoolForeign, other.Name, p.ID.Name)
			default:
				return fmt.Errorf("%w: pool %s is that of %s", ErrPoolTaken, p.ID.Name, in.ruleText(other))
			}
		}
	}
	return nil
}

// checkForeignPool rejects an own pool if a pool of that name has addresses, no rules and no recorded owner. Service
// pools are created with their rules, so it is foreign and would lose its members.
func (in Input) checkForeignPool(s ServiceParts) error {
	for _, p := range s.Pools {
		if !in.isOwnPool(s, p.ID.Name) || containsName(s.RecordedPools, p.ID.Name) || containsName(s.LeftPools, p.ID.Name) {
			continue
		}
		at := slices.IndexFunc(in.Observed.Pools, func(pool lb.Pool) bool { return strings.EqualFold(pool.ID.Name, p.ID.Name) })
		if at < 0 {
			continue
		}
		pool := in.Observed.Pools[at]
		used := slices.ContainsFunc(in.Observed.Rules, func(r lb.Rule) bool { return strings.EqualFold(r.Pool, pool.ID.Name) })
		if !used && (len(pool.Addresses) > 0 || pool.NIC) {
			return fmt.Errorf("%w: load balancer %s has a pool %s with addresses, and no rule of a Service sends flows to it. "+
				"Delete or empty that pool, make a BackendPool of it that names the Service, or rename the Service or its namespace",
				ErrPoolForeign, in.Observed.ID.Name, pool.ID.Name)
		}
	}
	return nil
}

// ErrPoolForeign means a foreign pool has the name of the Service's own pool.
var ErrPoolForeign = errors.New("the pool with the Service's name belongs to another owner")

// ErrPoolTaken means another Service's pool has the same name.
var ErrPoolTaken = errors.New("the names of two Services make the same pool: rename one of them, or its namespace")

// ErrPortTaken means another rule uses the port of the address.
var ErrPortTaken = errors.New("the address is shared, and the port is taken")

// checkPortConflict returns an error for the first rule that Azure rejects together with r: same frontend port, or same
// backend port of the nodes.
func (in Input) checkPortConflict(accepted *ruleIndex, r placedRule) error {
	front, back := findPort(accepted.byPort, r.place, r.Transport, r.FrontendPort), -1
	if !r.FloatingIP {
		back = findPort(accepted.byBackendPort, strings.ToLower(r.Pool), r.Transport, r.BackendPort)
		if back < 0 {
			back = accepted.findMachinePort(r)
		}
	}
	switch {
	case front < 0 && back < 0:
		return nil
	case front >= 0 && (back < 0 || front <= back):
		other := accepted.all[front]
		return fmt.Errorf("%w: by %s, %s%s", ErrPortTaken, in.ruleText(other), in.portOf(other), in.takeoverText(other))
	}
	other := accepted.all[back]
	if !strings.EqualFold(other.Pool, r.Pool) {
		return fmt.Errorf("%s already sends %s flows to port %d of machines that are in pool %s, too, by pool %s, and without floating IP no two rules may. "+
			"Change that rule, take the machines out of pool %s, or enable floating IP for the Service",
			in.ruleText(other), other.Transport, other.BackendPort, r.Pool, other.Pool, other.Pool)
	}
	return fmt.Errorf("%s already sends %s flows to port %d of pool %s, and without floating IP no two rules may",
		in.ruleText(other), other.Transport, other.BackendPort, r.Pool)
}

func (in Input) ruleText(s placedRule) string {
	if in.ServiceOf != nil {
		if of := in.ServiceOf(s.Name); of != "" {
			return "rule " + s.Name + " of " + service.DescribeOwner(of)
		}
	}
	return "rule " + s.Name
}

// takeoverText returns how a Service gets a port from another one; empty if no Service has it.
func (in Input) takeoverText(s placedRule) string {
	if in.ServiceOf == nil || in.ServiceOf(s.Name) == "" {
		return ""
	}
	kind, _, _ := strings.Cut(service.DescribeOwner(in.ServiceOf(s.Name)), " ")
	return ". Choose another port or address, or delete that " + kind + ": the port is taken over in the same write"
}

func (in Input) portOf(s placedRule) string {
	text := fmt.Sprintf("%s port %d", s.Transport, s.FrontendPort)
	if s.Transport == lb.All {
		text = "all ports"
	}
	if in.AddressAt != nil {
		if at := in.AddressAt(s.place); at != "" {
			text += " of " + at
		}
	}
	return text
}
