// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// ours returns the pools of Basic load balancers, which machines must leave.
func (s Seen) ours() nic.Ours {
	var pools []lb.PoolID
	for _, b := range s.basic() {
		for _, p := range b.Pools {
			pools = append(pools, lb.PoolID{LoadBalancer: b.ID, Name: p.ID.Name})
		}
	}
	return nic.NewOurs(nil, pools)
}

// detach writes a scale set's model first; otherwise new instances would join again.
func (s *Steps) detach(j Journal, snapshot Seen) {
	for _, b := range snapshot.basic() {
		s.safe(b, j, snapshot) // if a load balancer can't be deleted, no machine must leave
	}
	if len(s.Stops) > 0 {
		return
	}
	managed := snapshot.ours()
	for _, shown := range snapshot.Interfaces {
		next, changed := without(shown, managed)
		switch {
		case !changed || shown.Provisioning == lb.Deleting:
		case shown.Provisioning != "" && shown.Provisioning != lb.Succeeded && shown.Provisioning != lb.Failed:
			s.wait("network interface " + shown.ID.Name + " is " + string(shown.Provisioning))
		default:
			s.Interfaces = append(s.Interfaces, next)
		}
	}
	for _, set := range snapshot.ScaleSets {
		steps := nic.ScaleSet(set.ScaleSet, set.Instances, nic.Desire(nil, nil), managed, set.Known)
		if !set.Uniform {
			steps = flexible(set.ScaleSet, managed)
		}
		if steps.Done() {
			continue
		}
		s.ScaleSets = append(s.ScaleSets, SetSteps{ID: set.ID, Steps: steps})
		for _, w := range steps.Waits {
			s.wait(w.Why)
		}
	}
	if len(s.Interfaces)+len(s.ScaleSets)+len(s.Waits) > 0 {
		return
	}
	for _, b := range snapshot.basic() {
		for _, p := range b.Pools {
			for _, a := range p.Addresses {
				if a.Interface != "" {
					s.wait("pool " + p.ID.Name + " of load balancer " + b.ID.Name + " still has " + a.Interface)
				}
			}
		}
	}
}

// flexible writes the model only, which blocks the load balancer's deletion and adds new machines.
// Existing machines have their own network interfaces.
func flexible(set lb.ScaleSet, managed nic.Ours) nic.Steps {
	set.Interfaces = slices.Clone(set.Interfaces)
	leaves := false
	for at, i := range set.Interfaces {
		next, changed := without(lb.NetworkInterface{InterfaceConfiguration: i}, managed)
		set.Interfaces[at], leaves = next.InterfaceConfiguration, leaves || changed
	}
	model := nic.Resource{ID: set.ID}
	switch {
	case !leaves || set.Provisioning == lb.Deleting:
		return nic.Steps{}
	case busy(set.Provisioning):
		return nic.Steps{Waits: []nic.Wait{{Resource: model, Why: model.String() + " is " + string(set.Provisioning)}}}
	}
	return nic.Steps{Model: &set}
}

// without removes all IP configurations from the pools, because the load balancer is deleted.
func without(i lb.NetworkInterface, managed nic.Ours) (next lb.NetworkInterface, changed bool) {
	i.IPConfigurations = slices.Clone(i.IPConfigurations)
	for at := range i.IPConfigurations {
		c := &i.IPConfigurations[at]
		left := slices.DeleteFunc(slices.Clone(c.Pools), managed.Holds)
		changed = changed || len(left) != len(c.Pools)
		c.Pools = left
	}
	return i, changed
}
