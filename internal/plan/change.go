// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Action is what becomes of a part of a load balancer.
type Action string

// The actions.
const (
	Add    Action = "add"
	Alter  Action = "change"
	Remove Action = "remove"
)

// Kind is a kind of parts.
type Kind string

// The kinds, in the order in which they need each other.
const (
	Pool     Kind = "pool"
	Probe    Kind = "probe"
	Frontend Kind = "frontend"
	Rule     Kind = "rule"
)

// Change is one difference. Was and Is are the part before and after, of the type of its
// kind in package lb; nil where there is none.
type Change struct {
	Action  Action
	Kind    Kind
	Name    string
	Was, Is any
}

// Diff lists the differences of two load balancers, but for the members of pools: additions
// and changes forward, so that what is needed comes before what needs it, and removals last
// and in reverse.
func Diff(before, after lb.LoadBalancer) []Change {
	var forward, reverse []Change
	compare(before.Pools, after.Pools, Pool, poolName, func(lb.Pool, lb.Pool) bool { return true }, &forward, &reverse)
	compare(before.Probes, after.Probes, Probe, probeName, sameProbe, &forward, &reverse)
	compare(before.Frontends, after.Frontends, Frontend, frontendName, sameFrontend, &forward, &reverse)
	compare(before.Rules, after.Rules, Rule, ruleName, sameRule, &forward, &reverse)
	slices.Reverse(reverse)
	return append(forward, reverse...)
}

func compare[T any](before, after []T, kind Kind, name func(T) string, same func(is, shall T) bool, forward, reverse *[]Change) {
	atBefore, atAfter := byName(before, name), byName(after, name)
	for _, is := range after {
		switch at, there := atBefore[strings.ToLower(name(is))]; {
		case !there:
			*forward = append(*forward, Change{Action: Add, Kind: kind, Name: name(is), Is: is})
		case !same(before[at], is):
			*forward = append(*forward, Change{Action: Alter, Kind: kind, Name: name(is), Was: before[at], Is: is})
		}
	}
	for _, was := range before {
		if _, there := atAfter[strings.ToLower(name(was))]; !there {
			*reverse = append(*reverse, Change{Action: Remove, Kind: kind, Name: name(was), Was: was})
		}
	}
}

// sameFrontend reports whether a frontend is as it shall be. An address that Azure chose
// is as good as any other, and so are zones where none are asked for.
func sameFrontend(is, shall lb.Frontend) bool {
	return strings.EqualFold(is.Name, shall.Name) && strings.EqualFold(is.PublicIP, shall.PublicIP) &&
		strings.EqualFold(is.Subnet, shall.Subnet) && is.Static == shall.Static &&
		(!shall.Static || is.PrivateIP == shall.PrivateIP) &&
		(len(shall.Zones) == 0 || slices.Equal(is.Zones, shall.Zones))
}

func sameProbe(is, shall lb.Probe) bool {
	is.Name, shall.Name = strings.ToLower(is.Name), strings.ToLower(shall.Name)
	return is == shall
}

// sameRule reports whether a rule is as it shall be. What Azure shows of TCP resets where
// there is no TCP counts for nothing.
func sameRule(is, shall lb.Rule) bool {
	reset := shall.TCPReset == nil || is.TCPReset != nil && *is.TCPReset == *shall.TCPReset ||
		is.TCPReset == nil && !*shall.TCPReset
	for _, r := range []*lb.Rule{&is, &shall} {
		r.TCPReset = nil
		r.Name, r.Frontend, r.Pool, r.Probe = strings.ToLower(r.Name), strings.ToLower(r.Frontend), strings.ToLower(r.Pool), strings.ToLower(r.Probe)
	}
	return reset && is == shall
}
