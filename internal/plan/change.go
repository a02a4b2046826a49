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
