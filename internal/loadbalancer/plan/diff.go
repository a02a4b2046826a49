// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
)

// Diff returns the differences of two load balancers except pool members: additions and changes in dependency
// order, then removals in reverse.
func Diff(before, after lb.LoadBalancer) []lb.Change {
	var forward, reverse []lb.Change
	diffParts(before.Pools, after.Pools, lb.KindPool, poolName, samePool, &forward, &reverse)
	diffParts(before.Probes, after.Probes, lb.KindProbe, probeName, sameProbe, &forward, &reverse)
	diffParts(before.Frontends, after.Frontends, lb.KindFrontend, frontendName, sameFrontend, &forward, &reverse)
	diffParts(before.Rules, after.Rules, lb.KindRule, ruleName, sameRule, &forward, &reverse)
	slices.Reverse(reverse)
	return append(forward, reverse...)
}

func diffParts[T any](before, after []T, kind lb.Kind, name func(T) string, isSame func(current, want T) bool, forward, reverse *[]lb.Change) {
	atBefore, atAfter := byName(before, name), byName(after, name)
	for _, current := range after {
		switch at, exists := atBefore[strings.ToLower(name(current))]; {
		case !exists:
			*forward = append(*forward, lb.Change{Action: lb.ActionAdd, Kind: kind, Name: name(current), Is: current})
		case !isSame(before[at], current):
			*forward = append(*forward, lb.Change{Action: lb.ActionModify, Kind: kind, Name: name(current), Was: before[at], Is: current})
		}
	}
	for _, previous := range before {
		if _, exists := atAfter[strings.ToLower(name(previous))]; !exists {
			*reverse = append(*reverse, lb.Change{Action: lb.ActionRemove, Kind: kind, Name: name(previous), Was: previous})
		}
	}
}

// sameFrontend reports whether a frontend matches the desired one. Any address matches a dynamic one; zones are
// ignored if none are requested.
func sameFrontend(current, want lb.Frontend) bool {
	return strings.EqualFold(current.Name, want.Name) && strings.EqualFold(current.PublicIP, want.PublicIP) &&
		strings.EqualFold(current.Subnet, want.Subnet) && current.Static == want.Static &&
		(!want.Static || current.PrivateIP == want.PrivateIP) &&
		(len(want.Zones) == 0 || slices.Equal(current.Zones, want.Zones)) &&
		(want.GatewayLoadBalancer == nil || strings.EqualFold(current.GatewayLoadBalancerID(), *want.GatewayLoadBalancer))
}

// samePool ignores members.
func samePool(current, want lb.Pool) bool { return current.DrainPeriod() == want.DrainPeriod() }

func sameProbe(current, want lb.Probe) bool {
	current.NoHealthyBackends = cmp.Or(current.NoHealthyBackends, lb.AllProbedDown)
	want.NoHealthyBackends = cmp.Or(want.NoHealthyBackends, lb.AllProbedDown)
	current.Name, want.Name = strings.ToLower(current.Name), strings.ToLower(want.Name)
	return current == want
}

// sameRule reports whether a rule matches the desired one. TCP reset is ignored for other protocols.
func sameRule(current, want lb.Rule) bool {
	reset := want.TCPReset == nil || current.TCPReset != nil && *current.TCPReset == *want.TCPReset ||
		current.TCPReset == nil && !*want.TCPReset
	tracking := current.TracksConnections() == want.TracksConnections()
	for _, r := range []*lb.Rule{&current, &want} {
		r.TCPReset, r.ConnectionTracking = nil, nil
		r.Name, r.Frontend, r.Pool, r.Probe = strings.ToLower(r.Name), strings.ToLower(r.Frontend), strings.ToLower(r.Pool), strings.ToLower(r.Probe)
	}
	return reset && tracking && current == want
}

// keepBehavior returns the desired probe with the observed behavior, unless the Service sets one.
func keepBehavior(current, want lb.Probe) lb.Probe {
	want.NoHealthyBackends = cmp.Or(want.NoHealthyBackends, current.NoHealthyBackends)
	return want
}

// keepTracking returns the desired rule with the observed connection tracking, unless the Service sets it.
func keepTracking(current, want lb.Rule) lb.Rule {
	want.ConnectionTracking = cmp.Or(want.ConnectionTracking, current.ConnectionTracking)
	return want
}
