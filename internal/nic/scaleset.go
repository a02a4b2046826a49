// SPDX-License-Identifier: Apache-2.0

package nic

import (
	"cmp"
	"maps"
	"slices"

	"weir.dev/weir/internal/lb"
)

// Known is what has to be known of a scale set besides what Azure shows. Its keys are ids of
// instances; what it does not name is false.
type Known struct {
	// Level are the instances that were as the model says when Weir last wrote the model: nothing
	// but that write is new to them. Bringing any other one to the model may bring it somebody
	// else's change, too, a new image among them.
	Level map[string]bool
	// Overdue are those that Azure was to upgrade by itself, and has been waited for long enough.
	Overdue map[string]bool
	// Alone are those that Weir has written by themselves after it last wrote the model. They are behind it
	// for that, and no upgrade is on its way to them.
	Alone map[string]bool
}

// Steps are what comes next for a uniform scale set: the model alone if it is not as it shall be,
// else its instances, one request after the other. The scale set is done if there are none.
type Steps struct {
	// Model is the scale set as its model shall become; nil if it is so already.
	Model *lb.ScaleSet
	// Upgrade are the ids of the instances that one request brings to the model.
	Upgrade []string
	// Write are instances as they shall become, each by a request of its own.
	Write []lb.Instance
	// Upgrading are the ids of those of Waits that Azure is to bring to the model by itself.
	Upgrading []string
	// Waits are instances, or the scale set, that nothing is done for yet, and why.
	Waits []Wait
}

// Wait is something that is waited for.
type Wait struct {
	Resource Resource
	// Why is for people, and names the resource.
	Why string
}

// Done reports whether nothing is left to do or to wait for.
func (s Steps) Done() bool {
	return s.Model == nil && len(s.Upgrade)+len(s.Write)+len(s.Waits) == 0
}

// ScaleSet returns what comes next for a uniform scale set and its instances. The model goes first:
// an instance that was written before its model would lose what it got to the next upgrade, and
// the next instance would come with what is no longer wanted.
//
// An instance that is no node keeps those of the model's pools that it is in, since the model gave
// them to it, and leaves all others of ours, since a pool with members cannot be deleted. One whose node is
// gone leaves the pools that say so.
func ScaleSet(set lb.ScaleSet, instances []lb.Instance, want Desired, ours Ours, known Known) Steps {
	model := Resource{ID: set.ID}
	if !set.Uniform || set.Provisioning == lb.Deleting {
		return Steps{}
	}
	pools := want.Model(set.ID, set.Interfaces)
	interfaces, next, ok := nextOfAll(set.Interfaces, pools, ours)
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
	if why := next.lacks(model.String()); why != "" {
		steps.Waits = append(steps.Waits, Wait{model, why})
	}
	instances = slices.Clone(instances)
	slices.SortFunc(instances, byID)
	for _, i := range instances {
		steps.instance(set, pools, i, want, ours, known)
	}
	return steps
}

// instance adds what comes next for an instance of a scale set whose model is in these pools, as it shall be.
func (s *Steps) instance(set lb.ScaleSet, model Pools, i lb.Instance, want Desired, ours Ours, known Known) {
	if i.Provisioning == lb.Deleting {
		return
	}
	m := Machine{ScaleSet: set.ID, Instance: i.ID}
	this := Resource{ID: set.ID, Instance: i.ID}
	pools := want.Machine(m)
	if !want.Node(m) {
		pools = want.Stays(m, within(model, i.Interfaces))
	} else if open := within(want.Open(m), i.Interfaces); len(open) > 0 { // its model gave it these, and they may want it
		pools = pools.and(open)
	}
	wait := func(why string) { s.Waits = append(s.Waits, Wait{this, why}) }
	interfaces, next, ok := nextOfAll(i.Interfaces, pools, ours)
	switch {
	case !ok && wants(pools):
		wait("none of the network interfaces of " + this.String() + " is primary")
	case !ok, !next.Changed && !wants(pools):
	case busy(i.Provisioning):
		wait(this.String() + " is " + string(i.Provisioning))
	case !next.Changed && i.Provisioning != lb.Failed:
		if why := next.lacks(this.String()); why != "" {
			wait(why)
		}
	case same(pools, model) && !i.LatestModel && !i.Protected && set.UpgradeMode != lb.UpgradeManual && !known.Overdue[i.ID] && !known.Alone[i.ID]:
		s.Upgrading = append(s.Upgrading, i.ID)
		wait(this.String() + " is not upgraded to the scale set's model yet, which its upgrade policy " + string(set.UpgradeMode) + " leaves to Azure")
	case same(pools, model) && !i.LatestModel && !i.Protected && set.UpgradeMode == lb.UpgradeManual && known.Level[i.ID]:
		s.Upgrade = append(s.Upgrade, i.ID)
	default:
		i.Interfaces = interfaces
		s.Write = append(s.Write, i)
	}
}

// and returns the pools and others of the same configuration, in the order of their ids.
func (ps Pools) and(others Pools) Pools {
	all := maps.Clone(ps)
	for family, ids := range others {
		ids = slices.Concat(all[family], ids)
		slices.SortFunc(ids, func(a, b lb.PoolID) int { return cmp.Compare(a.Key(), b.Key()) })
		all[family] = ids
	}
	return all
}

// within returns those of a model's pools that the primary one of several interfaces is in.
func within(model Pools, interfaces []lb.InterfaceConfiguration) Pools {
	at := primaryOf(interfaces)
	if at < 0 {
		return nil
	}
	has, in := map[lb.PoolKey]bool{}, Pools{}
	for _, ip := range interfaces[at].IPConfigurations {
		for _, id := range ip.Pools {
			has[keyOf(id)] = true
		}
	}
	for family, ids := range model {
		for _, id := range ids {
			if has[id.Key()] {
				in[family] = append(in[family], id)
			}
		}
	}
	return in
}

// same reports whether two interfaces shall be in the same pools.
func same(a, b Pools) bool {
	for _, family := range []lb.Family{lb.IPv4, lb.IPv6} {
		if !slices.EqualFunc(a[family], b[family], func(x, y lb.PoolID) bool { return x.Key() == y.Key() }) {
			return false
		}
	}
	return true
}

// byID orders instances by their numbers, which are decimal and have no sign.
func byID(a, b lb.Instance) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
}
