// SPDX-License-Identifier: Apache-2.0

package service

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nsg"
)

// The service tags that stand for everybody outside of the virtual network, and for those
// who ask the probes.
const (
	internet  = "Internet"
	azureSelf = "AzureLoadBalancer"
)

// Admissions are what a Service asks of the network's security group: addresses are those
// of its frontends, in their order, and nodes those that its load balancer sends flows to.
//
// The group sees a flow as it reaches a node. With floating IP it is for the frontend's
// address and port; without it, for the node's own, at the node port.
//
// A public Service lets the Internet in unless people say whom else. An internal one asks
// for nothing then: the group's own rules let the virtual network in. So does the Azure
// cloud provider, of whose internal Services none has a rule.
func (spec Spec) Admissions(addresses, nodes []netip.Addr) []nsg.Admission {
	if spec.Access.Unruled {
		return nil
	}
	var all []nsg.Admission
	for i, f := range spec.Frontends {
		family := f.Frontend.Family
		for _, g := range spec.gates(f) {
			if !g.floating && g.protocol == lb.Any {
				continue // all ports of all nodes are nobody's to open or close
			}
			a := nsg.Admission{Access: lb.Allow, Family: family, Protocol: g.protocol, Ports: g.ports}
			own, further := of(family, nodes), []netip.Addr(nil)
			if g.floating {
				own = of(family, addresses[min(i, len(addresses)):min(i+1, len(addresses))])
				further = of(family, spec.Access.Additional)
			}
			if len(own) == 0 {
				continue
			}
			for _, sources := range spec.sources(family) {
				a.Sources, a.Destinations = sources, slices.Concat(own, further)
				all = append(all, a)
			}
			a.Destinations = own
			all = append(all, spec.denials(a, g.floating)...)
		}
	}
	return all
}

// Limit returns the upper bound of the Service's clients. Addresses and nodes are as for Admissions.
func (spec Spec) Limit(addresses, nodes []netip.Addr) *nsg.Limit {
	l := &nsg.Limit{Ranges: spec.Access.Ranges, Tags: spec.Access.Tags, Private: spec.Internal && !spec.Access.Limited()}
	spec.Access, spec.Internal = Access{Additional: spec.Access.Additional}, false
	l.Own = spec.Admissions(addresses, nodes)
	return l
}

// Denials are those Admissions that deny clients, with those that probes need then.
func (spec Spec) Denials(addresses, nodes []netip.Addr) []nsg.Admission {
	if !spec.Access.Limited() {
		return nil
	}
	spec.Access.Restricted, spec.Access.Ranges, spec.Access.Tags = true, nil, nil
	return spec.Admissions(addresses, nodes)
}

// boundSecurityRules leaves out the service tags of a Service whose sources, protocols and families make more security rules than
// a group holds, before they are spelled out.
func (r *reader) boundSecurityRules(spec *Spec) {
	if spec.Access.Unruled {
		return
	}
	rules := 0
	for _, f := range spec.Frontends {
		rules += len(spec.gates(f)) * len(spec.sources(f.Frontend.Family))
	}
	if rules > lb.MostSecurityRules {
		r.flawed(AllowedServiceTags, fmt.Sprintf("%d security rules, for each protocol and IP family", rules),
			fmt.Sprintf("at most %d: Azure takes no more in a security group", lb.MostSecurityRules), admitsNobody)
		spec.Access.Tags = nil
	}
}

// gate is how flows of one protocol get in.
type gate struct {
	protocol string
	ports    []string
	floating bool
}

// gates are those of a frontend: the ports of a protocol stand in one rule.
func (spec Spec) gates(f Frontend) []gate {
	var all []gate
	for _, r := range spec.Rules {
		if r.Frontend != f.Frontend.Name {
			continue
		}
		g := gate{protocol: string(r.Transport), floating: r.FloatingIP}
		if r.Transport == lb.All {
			g.protocol = lb.Any
		}
		at := slices.IndexFunc(all, func(o gate) bool { return o.protocol == g.protocol })
		if at < 0 {
			at = len(all)
			all = append(all, g)
		}
		all[at].ports = append(all[at].ports, gatePort(r))
	}
	for i := range all {
		slices.Sort(all[i].ports)
		all[i].ports = slices.Compact(all[i].ports)
	}
	return all
}

// gatePort is where flows of a rule arrive at the node.
func gatePort(r lb.Rule) string {
	switch {
	case r.Transport == lb.All:
		return lb.Any
	case r.FloatingIP:
		return strconv.Itoa(int(r.FrontendPort))
	}
	return strconv.Itoa(int(r.BackendPort))
}

// sources are who may enter, each a rule of its own: Azure takes one service tag in a rule,
// and no ranges beside it.
func (spec Spec) sources(family lb.Family) [][]string {
	if !spec.Access.Limited() {
		if spec.Internal {
			return nil
		}
		return [][]string{{internet}}
	}
	var all [][]string
	var ranges []string
	for _, p := range spec.Access.Ranges {
		if family.Of(p.Addr()) {
			ranges = append(ranges, p.String())
		}
	}
	if len(ranges) > 0 {
		all = append(all, ranges)
	}
	for _, tag := range spec.Access.Tags {
		all = append(all, []string{tag})
	}
	return all
}

// denials keep out whom the Service does not name, in the virtual network too. A frontend's
// address is closed on all its ports. A node has other ports, and is asked by probes at
// these: they still get in.
func (spec Spec) denials(a nsg.Admission, floating bool) []nsg.Admission {
	if !spec.Access.Alone || !spec.Access.Limited() {
		return nil
	}
	deny := a
	deny.Access, deny.Sources = lb.Deny, []string{lb.Any}
	if floating {
		deny.Protocol, deny.Ports = lb.Any, []string{lb.Any}
		return []nsg.Admission{deny}
	}
	a.Sources = []string{azureSelf}
	return []nsg.Admission{a, deny}
}

// OwnPools reports whether a Service has pools of its own, which have nodes that host its endpoints
// wherever those are.
func (spec Spec) OwnPools() bool {
	return slices.ContainsFunc(spec.Pools, func(p Pool) bool { return !p.Shared })
}

// NodePorts are the ports at the nodes' own addresses where flows for the Service arrive;
// none with floating IP.
func (spec Spec) NodePorts() []int32 {
	var all []int32
	for _, r := range spec.Rules {
		if !r.FloatingIP && r.Transport != lb.All {
			all = append(all, r.BackendPort)
		}
	}
	return all
}

func of(family lb.Family, addresses []netip.Addr) []netip.Addr {
	return slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return !family.Of(a) })
}

// Unenforced says which restrictions of a Service have no effect, because no security rule
// follows from them, and why; empty if there are none. guarded is true if there is a security
// group for the rules. Whoever restricts a Service takes it for restricted.
func (s Service) Unenforced(guarded bool) string {
	r := &reader{annotations: s.Annotations}
	limits := s.limits()
	alone := r.strictly(DenyAllExcept, true, "")
	all := limits
	if alone {
		all = append(all, DenyAllExcept)
	}
	switch {
	case len(all) == 0:
		return ""
	case !guarded:
		return withoutEffect(all, "azure.json names no securityGroupName, and no security rule is made")
	case r.strictly(DisableSecurityRules, false, ""):
		return withoutEffect(all, DisableSecurityRules+` is "true", and no security rule is made`)
	case len(limits) == 0:
		return withoutEffect(all, "no range and no service tag says who may connect, so everybody may")
	}
	return ""
}

func withoutEffect(fields []string, why string) string {
	return "restrictions without effect: " + strings.Join(fields, ", ") + ": " + why
}

// limits are the fields of a Service that say who may connect. One whose value nobody can read
// says so, too.
func (s Service) limits() []string {
	r := &reader{annotations: s.Annotations}
	var all []string
	ranges := SourceRanges
	if len(s.SourceRanges) > 0 { // it goes before the annotation
		ranges = ""
		all = append(all, "spec.loadBalancerSourceRanges")
	}
	for _, name := range []string{ranges, AllowedIPRanges, AllowedServiceTags} {
		text, _ := r.text(name)
		if len(words(text)) > 0 {
			all = append(all, name)
		}
	}
	return all
}
