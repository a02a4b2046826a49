// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"cmp"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Known is the recorded state of instances by ID.
type Known struct {
	// Level had the latest model when Weir last wrote it, so an upgrade applies only that write,
	// not foreign changes such as a new image.
	Level map[string]bool
	// Overdue were not upgraded by Azure in time.
	Overdue map[string]bool
	// Alone were written directly since the last model write. They lack the latest model for that
	// reason, and no upgrade will follow.
	Alone map[string]bool
}

// Steps are the next actions for a uniform scale set; no steps means done.
type Steps struct {
	// Model is the scale set to write; nil if in sync.
	Model *lb.ScaleSet
	// Upgrade are the instances to upgrade with one request.
	Upgrade []string
	// Write are instances to write, each with its own request.
	Write []lb.Instance
	// Upgrading are waiting instances that Azure upgrades.
	Upgrading []string
	Waits     []Wait
}

// Wait is a blocked resource.
type Wait struct {
	Resource Resource
	Why      string
}

// Done reports whether there is nothing left to do or to wait for.
func (s Steps) Done() bool {
	return s.Model == nil && len(s.Upgrade)+len(s.Write)+len(s.Waits) == 0
}

// ScaleSet returns the next actions for a uniform scale set. The model comes first: an upgrade to
// an old model would undo a direct write.
//
// An instance without a node retains the model's pools and leaves other managed pools, since a pool
// with members cannot be deleted. After its node was deleted it leaves the pools that list it.
func ScaleSet(set lb.ScaleSet, instances []lb.Instance, want Desired, managed Ours, known Known) Steps {
	model := Resource{ID: set.ID}
	if !set.Uniform || set.Provisioning == lb.Deleting {
		return Steps{}
	}
	pools := want.Model(set.ID, set.Interfaces)
	interfaces, next, ok := nextOfAll(set.Interfaces, pools, managed)
	switch {
	case !ok && !wants(pools):
	case !ok:
		return Steps{Waits: []Wait{{model, "none of the network interfaces of " + model.String() + " is primary"}}}
	case next.Changed && busy(set.Provisioning):
		return Steps{Waits: []Wait{{model, model.String() + " is " + string(set.Provisioning)}}}
	case next.Changed:
		set.Interfaces = interfaces
		return Steps{Model: &set}
	}
	var steps Steps
	if reason := next.lacks(model.String()); reason != "" {
		steps.Waits = append(steps.Waits, Wait{model, reason})
	}
	instances = slices.Clone(instances)
	slices.SortFunc(instances, byID)
	for _, i := range instances {
		steps.instance(set, pools, i, want, managed, known)
	}
	return steps
}

func (s *Steps) instance(set lb.ScaleSet, model Pools, i lb.Instance, want Desired, managed Ours, known Known) {
	if i.Provisioning == lb.Deleting {
		return
	}
	m := Machine{ScaleSet: set.ID, Instance: i.ID}
	target := Resource{ID: set.ID, Instance: i.ID}
	pools := want.Machine(m)
	if !want.Node(m) {
		pools = want.Stays(m, within(model, i.Interfaces))
	} else if open := within(want.Open(m), i.Interfaces); len(open) > 0 { // the model added these pools, and they may still want the instance
		pools = pools.and(open)
	}
	wait := func(reason string) { s.Waits = append(s.Waits, Wait{target, reason}) }
	interfaces, next, ok := nextOfAll(i.Interfaces, pools, managed)
	switch {
	case !ok && wants(pools):
		wait("none of the network interfaces of " + target.String() + " is primary")
	case !ok, !next.Changed && !wants(pools):
	case busy(i.Provisioning):
		wait(target.String() + " is " + string(i.Provisioning))
	case !next.Changed && i.Provisioning != lb.Failed:
		if reason := next.lacks(target.String()); reason != "" {
			wait(reason)
		}
	case same(pools, model) && !i.LatestModel && !i.Protected && set.UpgradeMode != lb.UpgradeManual && !known.Overdue[i.ID] && !known.Alone[i.ID]:
		s.Upgrading = append(s.Upgrading, i.ID)
		wait(target.String() + " is not upgraded to the scale set's model yet, which its upgrade policy " + string(set.UpgradeMode) + " leaves to Azure")
	case same(pools, model) && !i.LatestModel && !i.Protected && set.UpgradeMode == lb.UpgradeManual && known.Level[i.ID]:
		s.Upgrade = append(s.Upgrade, i.ID)
	default:
		i.Interfaces = interfaces
		s.Write = append(s.Write, i)
	}
}

// and sorts the pools by ID.
func (ps Pools) and(others Pools) Pools {
	all := maps.Clone(ps)
	for family, ids := range others {
		ids = slices.Concat(all[family], ids)
		slices.SortFunc(ids, func(a, b lb.PoolID) int { return cmp.Compare(a.Key(), b.Key()) })
		all[family] = ids
	}
	return all
}

// within returns the pools of model that the primary interface is in.
func within(model Pools, interfaces []lb.InterfaceConfiguration) Pools {
	at := primaryOf(interfaces)
	if at < 0 {
		return nil
	}
	present, in := map[lb.PoolKey]bool{}, Pools{}
	for _, ip := range interfaces[at].IPConfigurations {
		for _, id := range ip.Pools {
			present[keyOf(id)] = true
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

func same(a, b Pools) bool {
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		if !slices.EqualFunc(a[family], b[family], func(x, y lb.PoolID) bool { return x.Key() == y.Key() }) {
			return false
		}
	}
	return true
}

// byID compares numerically.
func byID(a, b lb.Instance) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
}
