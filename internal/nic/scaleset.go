// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"cmp"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// ScaleSetState is the recorded state of instances by ID.
type ScaleSetState struct {
	// UpToDate had the latest model when Weir last wrote it, so an upgrade applies only that write,
	// not foreign changes such as a new image.
	UpToDate map[string]bool
	// UpgradeTimedOut were not upgraded by Azure in time.
	UpgradeTimedOut map[string]bool
	// WrittenAlone were written directly since the last model write. They lack the latest model for that
	// reason, and no upgrade will follow.
	WrittenAlone map[string]bool
}

// ScaleSetPlan are the next actions for a uniform scale set; no steps means done.
type ScaleSetPlan struct {
	// Model is the scale set to write; nil if in sync.
	Model *lb.ScaleSet
	// Upgrade are the instances to upgrade with one request.
	Upgrade []string
	// Write are instances to write, each with its own request.
	Write []lb.Instance
	// AutomaticUpgrades are waiting instances that Azure upgrades.
	AutomaticUpgrades []string
	Waiting           []WaitingResource
}

// WaitingResource is a blocked resource.
type WaitingResource struct {
	Resource Resource
	Reason   string
}

// IsDone reports whether there is nothing left to do or to wait for.
func (s ScaleSetPlan) IsDone() bool {
	return s.Model == nil && len(s.Upgrade)+len(s.Write)+len(s.Waiting) == 0
}

// PlanScaleSet returns the next actions for a uniform scale set. The model comes first: an upgrade to
// an old model would undo a direct write.
//
// An instance without a node retains the model's pools and leaves other managed pools, since a pool
// with members cannot be deleted. After its node was deleted it leaves the pools that list it.
func PlanScaleSet(set lb.ScaleSet, instances []lb.Instance, want Desired, managed ManagedPools, known ScaleSetState) ScaleSetPlan {
	model := Resource{ID: set.ID}
	if !set.Uniform || set.Provisioning == lb.Deleting {
		return ScaleSetPlan{}
	}
	pools := want.ModelPools(set.ID, set.Interfaces)
	interfaces, next, ok := nextConfigurations(set.Interfaces, pools, managed)
	switch {
	case !ok && !hasPools(pools):
	case !ok:
		return ScaleSetPlan{Waiting: []WaitingResource{{model, "none of the network interfaces of " + model.String() + " is primary"}}}
	case next.Changed && isUpdating(set.Provisioning):
		return ScaleSetPlan{Waiting: []WaitingResource{{model, model.String() + " is " + string(set.Provisioning)}}}
	case next.Changed:
		set.Interfaces = interfaces
		return ScaleSetPlan{Model: &set}
	}
	var steps ScaleSetPlan
	if reason := next.missingAddress(model.String()); reason != "" {
		steps.Waiting = append(steps.Waiting, WaitingResource{model, reason})
	}
	instances = slices.Clone(instances)
	slices.SortFunc(instances, compareByID)
	for _, i := range instances {
		steps.addInstance(set, pools, i, want, managed, known)
	}
	return steps
}

func (s *ScaleSetPlan) addInstance(set lb.ScaleSet, model Pools, i lb.Instance, want Desired, managed ManagedPools, known ScaleSetState) {
	if i.Provisioning == lb.Deleting {
		return
	}
	m := Machine{ScaleSet: set.ID, Instance: i.ID}
	target := Resource{ID: set.ID, Instance: i.ID}
	pools := want.MachinePools(m)
	if !want.IsNode(m) {
		pools = want.RetainedPools(m, poolsInUse(model, i.Interfaces))
	} else if open := poolsInUse(want.OpenPools(m), i.Interfaces); len(open) > 0 { // the model added these pools, and they may still want the instance
		pools = pools.mergePools(open)
	}
	wait := func(reason string) { s.Waiting = append(s.Waiting, WaitingResource{target, reason}) }
	interfaces, next, ok := nextConfigurations(i.Interfaces, pools, managed)
	switch {
	case !ok && hasPools(pools):
		wait("none of the network interfaces of " + target.String() + " is primary")
	case !ok, !next.Changed && !hasPools(pools):
	case isUpdating(i.Provisioning):
		wait(target.String() + " is " + string(i.Provisioning))
	case !next.Changed && i.Provisioning != lb.Failed:
		if reason := next.missingAddress(target.String()); reason != "" {
			wait(reason)
		}
	case equalPools(pools, model) && !i.LatestModel && !i.Protected && set.UpgradeMode != lb.UpgradeManual && !known.UpgradeTimedOut[i.ID] && !known.WrittenAlone[i.ID]:
		s.AutomaticUpgrades = append(s.AutomaticUpgrades, i.ID)
		wait(target.String() + " is not upgraded to the scale set's model yet, which its upgrade policy " + string(set.UpgradeMode) + " leaves to Azure")
	case equalPools(pools, model) && !i.LatestModel && !i.Protected && set.UpgradeMode == lb.UpgradeManual && known.UpToDate[i.ID]:
		s.Upgrade = append(s.Upgrade, i.ID)
	default:
		i.Interfaces = interfaces
		s.Write = append(s.Write, i)
	}
}

// mergePools sorts the pools by ID.
func (ps Pools) mergePools(others Pools) Pools {
	pools := maps.Clone(ps)
	for family, ids := range others {
		ids = slices.Concat(pools[family], ids)
		slices.SortFunc(ids, func(a, b lb.PoolID) int { return cmp.Compare(a.Key(), b.Key()) })
		pools[family] = ids
	}
	return pools
}

// poolsInUse returns the pools of model that the primary interface is in.
func poolsInUse(model Pools, interfaces []lb.InterfaceConfiguration) Pools {
	at := primaryInterfaceIndex(interfaces)
	if at < 0 {
		return nil
	}
	present, in := map[lb.PoolKey]bool{}, Pools{}
	for _, ip := range interfaces[at].IPConfigurations {
		for _, id := range ip.Pools {
			present[poolKey(id)] = true
		}
	}
	for family, ids := range model {
		for _, id := range ids {
			if present[id.Key()] {
				in[family] = append(in[family], id)
			}
		}
	}
	return in
}

func equalPools(a, b Pools) bool {
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		if !slices.EqualFunc(a[family], b[family], func(x, y lb.PoolID) bool { return x.Key() == y.Key() }) {
			return false
		}
	}
	return true
}

// compareByID compares numerically.
func compareByID(a, b lb.Instance) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
}
