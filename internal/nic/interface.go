// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"fmt"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Step is the next action for a machine with standalone interfaces. The zero value means done.
type Step struct {
	Write *lb.NetworkInterface
	// Waits is why the machine is not in its pools although nothing is written.
	Waits string
	// Unusable is set if there is no primary interface.
	Unusable bool
}

// Interface returns the next action for a machine. all are the observed interfaces.
func Interface(m Machine, all []lb.NetworkInterface, want Pools, managed Ours) Step {
	observed, reason := interfaceOf(m, all)
	if observed == nil {
		if wants(want) {
			return Step{Waits: reason, Unusable: true}
		}
		return Step{}
	}
	next := NextOf(observed.InterfaceConfiguration, want, managed)
	what := Resource{ID: observed.ID}.String()
	switch concerns := next.Changed || wants(want); {
	case observed.Provisioning == lb.Deleting, !concerns:
		return Step{}
	case busy(observed.Provisioning):
		return Step{Waits: what + " is " + string(observed.Provisioning)}
	case next.Changed, observed.Provisioning == lb.Failed: // after a failed write, the shown content may not be in effect
		write := *observed
		write.InterfaceConfiguration = next.InterfaceConfiguration
		return Step{Write: &write}
	}
	return Step{Waits: next.lacks(what)}
}

func interfaceOf(m Machine, all []lb.NetworkInterface) (*lb.NetworkInterface, string) {
	var owned []*lb.NetworkInterface
	var configurations []lb.InterfaceConfiguration
	for i := range all {
		if all[i].Machine == m.Key() {
			owned, configurations = append(owned, &all[i]), append(configurations, all[i].InterfaceConfiguration)
		}
	}
	at := primaryOf(configurations)
	switch {
	case len(owned) == 0:
		return nil, m.String() + " has no network interface"
	case at < 0:
		return nil, fmt.Sprintf("%s has %d network interfaces, and none is primary", m, len(owned))
	}
	return owned[at], ""
}

// Found reports whether all contains the primary interface of a machine. An unmarked one may be
// secondary.
func Found(m Machine, all []lb.NetworkInterface) bool {
	return slices.ContainsFunc(all, func(i lb.NetworkInterface) bool { return i.Machine == m.Key() && i.Primary })
}

func wants(p Pools) bool { return len(p[lb.IPv4])+len(p[lb.IPv6]) > 0 }

// busy reports whether a write is in progress.
func busy(p lb.Provisioning) bool { return p != "" && p != lb.Succeeded && p != lb.Failed }

func (n Next) lacks(what string) string {
	if len(n.Lacks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has no %s address", what, n.Lacks[0])
}
