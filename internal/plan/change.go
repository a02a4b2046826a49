// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Action is the operation on a part of a load balancer.
type Action string

// Actions.
const (
	Add    Action = "add"
	Alter  Action = "change"
	Remove Action = "remove"
)

// Kind is a kind of part.
type Kind string

// Kinds, in dependency order.
const (
	Pool     Kind = "pool"
	Probe    Kind = "probe"
	Frontend Kind = "frontend"
	Rule     Kind = "rule"
)

// Change is one difference. Was and Is are the part before and after, of the type in package lb; nil if absent.
type Change struct {
	Action  Action
	Kind    Kind
	Name    string
	Was, Is any
}

// Diff returns the differences of two load balancers except pool members: additions and changes in dependency
// order, then removals in reverse.
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

// sameFrontend reports whether a frontend matches the desired one. Any address matches a dynamic one; zones are
// ignored if none are requested.
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

// sameRule reports whether a rule matches the desired one. TCP reset is ignored for other protocols.
func sameRule(is, shall lb.Rule) bool {
	reset := shall.TCPReset == nil || is.TCPReset != nil && *is.TCPReset == *shall.TCPReset ||
		is.TCPReset == nil && !*shall.TCPReset
	for _, r := range []*lb.Rule{&is, &shall} {
		r.TCPReset = nil
		r.Name, r.Frontend, r.Pool, r.Probe = strings.ToLower(r.Name), strings.ToLower(r.Frontend), strings.ToLower(r.Pool), strings.ToLower(r.Probe)
	}
	return reset && is == shall
}
