// SPDX-License-Identifier: Apache-2.0

package service

import (
	"regexp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// LocalPools is the setting localServicePools; empty if unset.
type LocalPools string

// The values of LocalPools.
const (
	// AllNodes has Local Services use the pool of all nodes; their probes select the nodes with endpoints.
	AllNodes LocalPools = "nodes"
	// OwnPools gives each Local Service pools of its nodes with endpoints.
	OwnPools LocalPools = "own"
)

// PoolUse is what the rules of a Service use at present.
type PoolUse int

// The values of PoolUse.
const (
	NoPool   PoolUse = iota // no rules, or rules with other pools
	NodePool                // the pool of all nodes
	OwnPool                 // a pool of its own
)

// MemberKind is the kind of members that a pool has.
type MemberKind int

// The values of MemberKind.
const (
	UnknownMembers MemberKind = iota
	AddressMembers
	InterfaceMembers
)

// UsesOwnPool reports whether a Local Service uses a pool of its own. Without the setting, it follows
// cloud-provider-azure, which has them with several load balancers and pools of addresses only, and rules that
// already use one retain it. interfaces is the kind of the pool of all nodes.
func (set Settings) UsesOwnPool(interfaces bool, current PoolUse) bool {
	switch {
	case set.LocalPools != "":
		return set.LocalPools == OwnPools
	case interfaces && set.ConvertsPools: // azure.json requires interfaces
		return false
	case current == OwnPool:
		return true
	}
	return set.SeveralLoadBalancers && !interfaces
}

// UsesInterfaces returns the kind of the pools of all nodes: that of azure.json, otherwise the first known of
// what exists, otherwise the default.
func (set Settings) UsesInterfaces(existing ...MemberKind) bool {
	if !set.ConvertsPools {
		for _, kind := range existing {
			if kind != UnknownMembers {
				return kind == InterfaceMembers
			}
		}
	}
	return set.Interfaces
}

// MayHaveInterfaces reports whether pools of all nodes may hold network interfaces.
func (set Settings) MayHaveInterfaces() bool { return set.Interfaces || !set.ConvertsPools }

// NodeMembers returns the kind of members in the pools of all nodes of a load balancer.
func (set Settings) NodeMembers(pools []lb.Pool) MemberKind {
	for _, p := range pools {
		switch {
		case !set.isSharedPool(p.ID.Name):
		case p.NIC: // Azure may show its members as IP configurations only
			return InterfaceMembers
		case len(p.Addresses) > 0:
			return AddressMembers
		}
	}
	return UnknownMembers
}

func (set Settings) isSharedPool(name string) bool {
	return slices.ContainsFunc(set.SharedPools(), func(shared string) bool { return strings.EqualFold(shared, name) })
}

// ImpliedMembers returns the kind of members that the pools of Services imply for those of all nodes: addresses, because
// cloud-provider-azure has such pools only with pools of addresses. They imply nothing if azure.json requires them.
func (set Settings) ImpliedMembers(balancer lb.LoadBalancer) MemberKind {
	if set.LocalPools != "" {
		return UnknownMembers
	}
	addresses := map[string]bool{}
	for _, p := range balancer.Pools {
		addresses[strings.ToLower(p.ID.Name)] = len(p.Addresses) > 0 && !p.NIC && !set.isSharedPool(p.ID.Name)
	}
	if slices.ContainsFunc(balancer.Rules, func(r lb.Rule) bool { return addresses[strings.ToLower(r.Pool)] && ruleNamePattern.MatchString(r.Name) }) {
		return AddressMembers
	}
	return UnknownMembers
}

// ruleNamePattern matches the names of rules of Services, of Weir and of cloud-provider-azure.
var ruleNamePattern = regexp.MustCompile(`(?i)^a[0-9a-f]{1,31}-`)

// poolUse returns what the rules of the Service use.
func (spec *Spec) poolUse(set Settings, rules []lb.Rule) PoolUse {
	hasPool := func(pools []Pool, name string) bool {
		return slices.ContainsFunc(pools, func(p Pool) bool { return strings.EqualFold(p.Name, name) })
	}
	use := NoPool
	for _, r := range rules {
		if !strings.HasPrefix(strings.ToLower(r.Name), strings.ToLower(spec.Owner)) {
			continue
		}
		switch {
		case slices.ContainsFunc(set.NodePools(), func(name string) bool { return strings.EqualFold(name, r.Pool) }):
			use = max(use, NodePool)
		case hasPool(spec.OwnPools, r.Pool):
			return OwnPool
		}
	}
	return use
}

// SelectPools returns the Spec with the pools that it uses on a load balancer with these rules, where the pools
// of all nodes hold network interfaces or not. If its own pool cannot have its name, a Service uses that of all nodes.
func (spec *Spec) SelectPools(set Settings, interfaces bool, rules []lb.Rule) *Spec {
	own := len(spec.Rules) > 0 && len(spec.OwnPools) > 0 && checkPoolNames("", set, spec.OwnPools) == nil && set.UsesOwnPool(interfaces, spec.poolUse(set, rules))
	next := *spec
	next.Pools, next.Rules = slices.Clone(spec.Pools), slices.Clone(spec.Rules)
	for i, p := range spec.Pools {
		to := set.sharedPool(p.Family, interfaces)
		if own {
			to = spec.OwnPools[i]
		}
		next.Pools[i] = to
		for n, r := range spec.Rules {
			if r.Pool == p.Name {
				next.Rules[n].Pool = to.Name
			}
		}
	}
	return &next
}

// sharedPool returns the pool of all nodes of a family.
func (set Settings) sharedPool(family lb.Family, interfaces bool) Pool {
	return Pool{Name: set.SharedPools()[familyIndex(family)], Family: family, Shared: true, Interfaces: interfaces}
}

func familyIndex(family lb.Family) int {
	if family == lb.IPv6 {
		return 1
	}
	return 0
}
