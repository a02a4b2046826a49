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
	// Reason is why the machine is not in its pools although nothing is written.
	Reason string
	// Unavailable is set if there is no primary interface.
	Unavailable bool
}

// NextStep returns the next action for a machine. all are the observed interfaces.
func NextStep(m Machine, interfaces []lb.NetworkInterface, want Pools, managed ManagedPools) Step {
	observed, reason := primaryInterface(m, interfaces)
	if observed == nil {
		if hasPools(want) {
			return Step{Reason: reason, Unavailable: true}
		}
		return Step{}
	}
	next := NextConfiguration(observed.InterfaceConfiguration, want, managed)
	name := Resource{ID: observed.ID}.String()
	switch concerns := next.Changed || hasPools(want); {
	case observed.Provisioning == lb.Deleting, !concerns:
		return Step{}
	case isUpdating(observed.Provisioning):
		return Step{Reason: name + " is " + string(observed.Provisioning)}
	case next.Changed, observed.Provisioning == lb.Failed: // after a failed write, the shown content may not be in effect
		write := *observed
		write.InterfaceConfiguration = next.InterfaceConfiguration
		return Step{Write: &write}
	}
	return Step{Reason: next.missingAddress(name)}
}

func primaryInterface(m Machine, interfaces []lb.NetworkInterface) (*lb.NetworkInterface, string) {
	var owned []*lb.NetworkInterface
	var configurations []lb.InterfaceConfiguration
	for i := range interfaces {
		if interfaces[i].Machine == m.Key() {
			owned, configurations = append(owned, &interfaces[i]), append(configurations, interfaces[i].InterfaceConfiguration)
		}
	}
	at := primaryInterfaceIndex(configurations)
	switch {
	case len(owned) == 0:
		return nil, m.String() + " has no network interface"
	case at < 0:
		return nil, fmt.Sprintf("%s has %d network interfaces, and none is primary", m, len(owned))
	}
	return owned[at], ""
}

// HasPrimaryInterface reports whether all contains the primary interface of a machine. An unmarked one may be
// secondary.
func HasPrimaryInterface(m Machine, interfaces []lb.NetworkInterface) bool {
	return slices.ContainsFunc(interfaces, func(i lb.NetworkInterface) bool { return i.Machine == m.Key() && i.Primary })
}

func hasPools(p Pools) bool { return len(p[lb.IPv4])+len(p[lb.IPv6]) > 0 }

// isUpdating reports whether a write is in progress.
func isUpdating(p lb.Provisioning) bool { return p != "" && p != lb.Succeeded && p != lb.Failed }

func (n Next) missingAddress(resource string) string {
	if len(n.MissingFamilies) == 0 {
		return ""
	}
	return fmt.Sprintf("%s has no %s address", resource, n.MissingFamilies[0])
}
