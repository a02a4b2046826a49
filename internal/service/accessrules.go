// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Service tags.
const (
	internet       = "Internet"
	virtualNetwork = "VirtualNetwork"
	azureSelf      = "AzureLoadBalancer" // source of health probes
)

// AccessRules returns the security rules that a Service needs: addresses are those of its frontends in order,
// and nodes are the backend nodes.
//
// The security group sees a flow at the node. With floating IP the destination is the frontend's address and
// port, otherwise the node's address and node port.
//
// A public Service admits the Internet unless sources are restricted. An internal one then needs no rule,
// because default rules admit the virtual network; cloud-provider-azure does the same.
func (spec Spec) AccessRules(addresses, nodes []netip.Addr) []AccessRule {
	if spec.Access.NoSecurityRules {
		return nil
	}
	var rules []AccessRule
	for i, f := range spec.Frontends {
		family := f.Frontend.Family
		for _, g := range spec.ruleTargets(f) {
			if !g.floating && g.protocol == lb.Any {
				continue // no Service may open or close all ports of the nodes
			}
			a := AccessRule{Access: lb.Allow, Family: family, Protocol: g.protocol, Ports: g.ports}
			own, further := filterFamily(family, nodes), []netip.Addr(nil)
			if g.floating {
				own = filterFamily(family, addresses[min(i, len(addresses)):min(i+1, len(addresses))])
				further = filterFamily(family, spec.Access.Additional)
			}
			if len(own) == 0 {
				continue
			}
			for _, sources := range spec.sourceLists(family) {
				a.Sources, a.Destinations = sources, slices.Concat(own, further)
				rules = append(rules, a)
			}
			a.Destinations = own
			rules = append(rules, spec.denyOthers(a, g.floating)...)
		}
	}
	return rules
}

// RetainedRules returns rules that cloud-provider-azure makes and the Service does not need: without floating IP it
// admits the Service's clients at the node addresses of both families. Weir retains such rules and never adds them.
func (spec Spec) RetainedRules(nodes []netip.Addr) []AccessRule {
	if spec.Access.NoSecurityRules || len(spec.Frontends) != 1 {
		return nil
	}
	f := spec.Frontends[0]
	other := map[lb.Family]lb.Family{lb.IPv4: lb.IPv6, lb.IPv6: lb.IPv4}[f.Frontend.Family]
	var rules []AccessRule
	for _, g := range spec.ruleTargets(f) {
		destinations := filterFamily(other, nodes)
		if g.floating || g.protocol == lb.Any || len(destinations) == 0 {
			continue
		}
		for _, sources := range spec.sourceLists(other) {
			rules = append(rules, AccessRule{Access: lb.Allow, Family: other, Protocol: g.protocol, Ports: g.ports, Sources: sources, Destinations: destinations})
		}
	}
	return rules
}

// ClientLimit returns the upper bound of the Service's clients. The addresses are those of its frontends in order,
// the nodes are the backend nodes.
func (spec Spec) ClientLimit(addresses, nodes []netip.Addr) *SecurityLimit {
	l := &SecurityLimit{Ranges: spec.Access.Ranges, Tags: spec.Access.Tags, Private: spec.Internal && !spec.Access.IsLimited()}
	spec.Access, spec.Internal = Access{Additional: spec.Access.Additional}, false
	l.Own = spec.AccessRules(addresses, nodes)
	return l
}

// DenyRules returns the rules that deny clients, and those that probes then need.
func (spec Spec) DenyRules(addresses, nodes []netip.Addr) []AccessRule {
	if !spec.Access.IsLimited() {
		return nil
	}
	spec.Access.HasRestriction, spec.Access.Ranges, spec.Access.Tags = true, nil, nil
	return spec.AccessRules(addresses, nodes)
}

// boundSecurityRules removes the service tags if the Service needs more security rules than a group can have.
func (r *reader) boundSecurityRules(spec *Spec) {
	if spec.Access.NoSecurityRules {
		return
	}
	rules := 0
	for _, f := range spec.Frontends {
		rules += len(spec.ruleTargets(f)) * len(spec.sourceLists(f.Frontend.Family))
	}
	if rules > lb.MaxSecurityRules {
		r.addFlaw(AllowedServiceTags, fmt.Sprintf("%d security rules, for each protocol and IP family", rules),
			fmt.Sprintf("at most %d: Azure's limit in a security group", lb.MaxSecurityRules), effectIgnoreValue)
		spec.Access.Tags = nil
	}
}

// ruleTarget is how flows of one protocol reach a node.
type ruleTarget struct {
	protocol string
	ports    []string
	floating bool
}

// ruleTargets returns the targets of a frontend; one rule has all ports of a protocol.
func (spec Spec) ruleTargets(f Frontend) []ruleTarget {
	var targets []ruleTarget
	for _, r := range spec.Rules {
		if r.Frontend != f.Frontend.Name {
			continue
		}
		g := ruleTarget{protocol: string(r.Transport), floating: r.FloatingIP}
		if r.Transport == lb.All {
			g.protocol = lb.Any
		}
		at := slices.IndexFunc(targets, func(o ruleTarget) bool { return o.protocol == g.protocol })
		if at < 0 {
			at = len(targets)
			targets = append(targets, g)
		}
		targets[at].ports = append(targets[at].ports, targetPort(r))
	}
	for i := range targets {
		slices.Sort(targets[i].ports)
		targets[i].ports = slices.Compact(targets[i].ports)
	}
	return targets
}

func targetPort(r lb.Rule) string {
	switch {
	case r.Transport == lb.All:
		return lb.Any
	case r.FloatingIP:
		return strconv.Itoa(int(r.FrontendPort))
	}
	return strconv.Itoa(int(r.BackendPort))
}

// sourceLists returns the sources of each security rule: Azure accepts one service tag per rule, and no ranges
// with it.
func (spec Spec) sourceLists(family lb.Family) [][]string {
	if !spec.Access.IsLimited() {
		if spec.Internal {
			return nil
		}
		return [][]string{{internet}}
	}
	var names [][]string
	var ranges []string
	for _, p := range spec.Access.Ranges {
		if family.Contains(p.Addr()) {
			ranges = append(ranges, p.String())
		}
	}
	if len(ranges) > 0 {
		names = append(names, ranges)
	}
	for _, tag := range spec.Access.Tags {
		names = append(names, []string{tag})
	}
	return names
}

// denyOthers deny all other sources, including the virtual network. A frontend address is closed on all ports.
// At a node address only the Service's ports are closed, and probes remain allowed.
func (spec Spec) denyOthers(a AccessRule, floating bool) []AccessRule {
	if !spec.Access.DenyOthers || !spec.Access.IsLimited() {
		return nil
	}
	deny := a
	deny.Access, deny.Sources = lb.Deny, []string{lb.Any}
	if floating {
		deny.Protocol, deny.Ports = lb.Any, []string{lb.Any}
		return []AccessRule{deny}
	}
	a.Sources = []string{azureSelf}
	return []AccessRule{a, deny}
}

// HasDedicatedPools reports whether the Service has dedicated pools, which contain the nodes with its endpoints.
func (spec Spec) HasDedicatedPools() bool {
	return slices.ContainsFunc(spec.Pools, func(p Pool) bool { return !p.Shared })
}

// NodePorts returns the node ports that receive flows; none with floating IP.
func (spec Spec) NodePorts() []int32 {
	var ports []int32
	for _, r := range spec.Rules {
		if !r.FloatingIP && r.Transport != lb.All {
			ports = append(ports, r.BackendPort)
		}
	}
	return ports
}

func filterFamily(family lb.Family, addresses []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return !family.Contains(a) })
}

// UnenforcedReason describes the restrictions of a Service that have no effect because they create no security
// rule; "" if none. guarded is true if a security group is configured.
func (s Service) UnenforcedReason(guarded bool) string {
	r := &reader{annotations: s.Annotations}
	limits := s.restrictionFields()
	alone := r.readRestriction(DenyAllExcept, true, "")
	reason := limits
	if alone {
		reason = append(reason, DenyAllExcept)
	}
	switch {
	case len(reason) == 0:
		return ""
	case !guarded:
		return withoutEffect(reason, "azure.json names no securityGroupName, and no security rule is made")
	case r.readRestriction(DisableSecurityRules, false, ""):
		return withoutEffect(reason, DisableSecurityRules+` is "true", and no security rule is made`)
	case len(limits) == 0:
		return withoutEffect(reason, "no source range and no service tag restricts it, so it is open to all sources")
	}
	return ""
}

// NeedsSecurityGroup reports whether a security group must admit the clients of a public Service; its user may manage the
// rules instead.
func (spec Spec) NeedsSecurityGroup() bool {
	return !spec.Internal && len(spec.Rules) > 0 && !spec.Access.NoSecurityRules
}

func withoutEffect(fields []string, reason string) string {
	return "restrictions without effect: " + strings.Join(fields, ", ") + ": " + reason
}

// restrictionFields returns the fields that restrict sources, including invalid ones.
func (s Service) restrictionFields() []string {
	r := &reader{annotations: s.Annotations}
	var fields []string
	ranges := SourceRanges
	if len(s.SourceRanges) > 0 { // it takes precedence over the annotation
		ranges = ""
		fields = append(fields, "spec.loadBalancerSourceRanges")
	}
	for _, name := range []string{ranges, AllowedIPRanges, AllowedServiceTags} {
		if _, ok := r.readText(name); ok {
			fields = append(fields, name)
		}
	}
	return fields
}
