// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"slices"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// managedPools returns the pools of Basic load balancers, which machines must leave.
func (s Snapshot) managedPools() nic.ManagedPools {
	var pools []lb.PoolID
	for _, b := range s.basicLoadBalancers() {
		for _, p := range b.Pools {
			pools = append(pools, lb.PoolID{LoadBalancer: b.ID, Name: p.ID.Name})
		}
	}
	return nic.NewManagedPools(nil, pools)
}

// addDetach writes a scale set's model first; otherwise new instances would join again.
func (s *Steps) addDetach(j Journal, snapshot Snapshot) {
	for _, b := range snapshot.basicLoadBalancers() {
		s.checkSafeToDelete(b, j, snapshot) // if a load balancer can't be deleted, no machine must leave
	}
	if len(s.StopReasons) > 0 {
		return
	}
	managed := snapshot.managedPools()
	for _, shown := range snapshot.Interfaces {
		next, changed := removePools(shown, managed)
		switch {
		case !changed || shown.Provisioning == lb.Deleting:
		case shown.Provisioning != "" && shown.Provisioning != lb.Succeeded && shown.Provisioning != lb.Failed:
			s.addWait("network interface " + shown.ID.Name + " is " + string(shown.Provisioning))
		default:
			s.Interfaces = append(s.Interfaces, next)
		}
	}
	for _, set := range snapshot.ScaleSets {
		steps := nic.PlanScaleSet(set.ScaleSet, set.Instances, nic.NewDesired(nil, nil), managed, set.Known)
		if !set.Uniform {
			steps = flexibleSetSteps(set.ScaleSet, managed)
		}
		if steps.IsDone() {
			continue
		}
		s.ScaleSets = append(s.ScaleSets, ScaleSetSteps{ID: set.ID, ScaleSetPlan: steps})
		for _, w := range steps.Waiting {
			s.addWait(w.Reason)
		}
	}
	if len(s.Interfaces)+len(s.ScaleSets)+len(s.WaitReasons) > 0 {
		return
	}
	for _, b := range snapshot.basicLoadBalancers() {
		for _, p := range b.Pools {
			for _, a := range p.Addresses {
				if a.Interface != "" {
					s.addWait("pool " + p.ID.Name + " of load balancer " + b.ID.Name + " still has " + a.Interface)
				}
			}
		}
	}
}

// flexibleSetSteps writes the model only, which blocks the load balancer's deletion and adds new machines.
// Existing machines have their own network interfaces.
func flexibleSetSteps(set lb.ScaleSet, managed nic.ManagedPools) nic.ScaleSetPlan {
	set.Interfaces = slices.Clone(set.Interfaces)
	leaves := false
	for at, i := range set.Interfaces {
		next, changed := removePools(lb.NetworkInterface{InterfaceConfiguration: i}, managed)
		set.Interfaces[at], leaves = next.InterfaceConfiguration, leaves || changed
	}
	model := nic.Resource{ID: set.ID}
	switch {
	case !leaves || set.Provisioning == lb.Deleting:
		return nic.ScaleSetPlan{}
	case isUpdating(set.Provisioning):
		return nic.ScaleSetPlan{Waiting: []nic.WaitingResource{{Resource: model, Reason: model.String() + " is " + string(set.Provisioning)}}}
	}
	return nic.ScaleSetPlan{Model: &set}
}

// removePools removes all IP configurations from the pools, because the load balancer is deleted.
func removePools(i lb.NetworkInterface, managed nic.ManagedPools) (next lb.NetworkInterface, changed bool) {
	i.IPConfigurations = slices.Clone(i.IPConfigurations)
	for at := range i.IPConfigurations {
		c := &i.IPConfigurations[at]
		remaining := slices.DeleteFunc(slices.Clone(c.Pools), managed.HasPool)
		changed = changed || len(remaining) != len(c.Pools)
		c.Pools = remaining
	}
	return i, changed
}
