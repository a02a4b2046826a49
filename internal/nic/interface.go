// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"fmt"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Step is what comes next for a machine that has network interfaces of its own. It is done if
// nothing is to be written and nothing waited for.
type Step struct {
	// Write is the interface as it shall become; nil if none is to be written now.
	Write *lb.NetworkInterface
	// Waits says why the machine is not where it belongs though nothing is written; empty if it is
	// there, or something is.
	Waits string
	// Unusable is true if that is so because it has no primary interface.
	Unusable bool
}

// Interface returns what comes next for a machine, of all interfaces that Azure shows. Of several
// that the machine has, the primary one is written.
func Interface(m Machine, all []lb.NetworkInterface, want Pools, ours Ours) Step {
	shown, why := interfaceOf(m, all)
	if shown == nil {
		if wants(want) {
			return Step{Waits: why, Unusable: true}
		}
		return Step{}
	}
	next := NextOf(shown.InterfaceConfiguration, want, ours)
	what := Resource{ID: shown.ID}.String()
	switch concerns := next.Changed || wants(want); {
	case shown.Provisioning == lb.Deleting, !concerns:
		return Step{}
	case busy(shown.Provisioning):
		return Step{Waits: what + " is " + string(shown.Provisioning)}
	case next.Changed, shown.Provisioning == lb.Failed: // what a failed write shows may not be in force
		write := *shown
		write.InterfaceConfiguration = next.InterfaceConfiguration
		return Step{Write: &write}
	}
	return Step{Waits: next.lacks(what)}
}

// interfaceOf returns the primary interface of a machine, or why there is none.
func interfaceOf(m Machine, all []lb.NetworkInterface) (*lb.NetworkInterface, string) {
	var own []*lb.NetworkInterface
	var configurations []lb.InterfaceConfiguration
	for i := range all {
		if all[i].Machine == m.Key() {
			own, configurations = append(own, &all[i]), append(configurations, all[i].InterfaceConfiguration)
		}
	}
	at := primaryOf(configurations)
	switch {
	case len(own) == 0:
		return nil, m.String() + " has no network interface"
	case at < 0:
		return nil, fmt.Sprintf("%s has %d network interfaces, and none is primary", m, len(own))
	}
	return own[at], ""
}

// Found reports whether the primary interface of a machine is among those that Azure shows. One that
// is not marked may be a second one, whose machine has its first in another resource group.
func Found(m Machine, all []lb.NetworkInterface) bool {
	return slices.ContainsFunc(all, func(i lb.NetworkInterface) bool { return i.Machine == m.Key() && i.Primary })
}

// wants reports whether there are any pools.
func wants(p Pools) bool { return len(p[lb.IPv4])+len(p[lb.IPv6]) > 0 }

// busy reports whether Azure is at work on a resource: what it shows may be taken back yet.
func busy(p lb.Provisioning) bool { return p != "" && p != lb.Succeeded && p != lb.Failed }

// lacks says which address is missing; empty if none is.
func (n Next) lacks(what string) string {
	if len(n.Lacks) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has no %s address", what, n.Lacks[0])
}
