// SPDX-License-Identifier: Apache-2.0

package nic_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// simulation simulates a scale set in Azure.
type simulation struct {
	set       lb.ScaleSet
	instances []lb.Instance
	// foreign are instances that would get a foreign change with the latest model.
	foreign map[string]bool
	// was are the foreign pools of each instance.
	was    map[string][]string
	writes int
}

// apply executes the steps and simulates Azure's own actions.
func (sim *simulation) apply(t *rapid.T, s nic.ScaleSetPlan) {
	if s.Model != nil {
		sim.set.Interfaces = s.Model.Interfaces
		sim.writes++
		for i := range sim.instances {
			sim.instances[i].LatestModel = false
		}
	}
	for _, id := range s.Upgrade {
		i := sim.instanceByID(id)
		if i.Protected || sim.foreign[id] {
			t.Fatalf("instance %s is upgraded, protected %v, another owner's change %v", id, i.Protected, sim.foreign[id])
		}
		i.Interfaces, i.LatestModel = sim.set.Interfaces, true
		sim.was[id] = foreign(sim.set.Interfaces)
	}
	if len(s.Upgrade) > 0 {
		sim.writes++
	}
	for _, w := range s.Write {
		if i := sim.instanceByID(w.ID); i.Provisioning != lb.Succeeded && i.Provisioning != lb.Failed {
			t.Fatalf("instance %s is written while it is %s", w.ID, i.Provisioning)
		}
		i := sim.instanceByID(w.ID)
		i.Interfaces, i.LatestModel, i.Provisioning = w.Interfaces, false, lb.Succeeded
		sim.writes++
	}
	for i := range sim.instances {
		got := &sim.instances[i]
		switch {
		case got.Provisioning == lb.Deleting:
		case sim.set.UpgradeMode != lb.UpgradeManual && !got.LatestModel && !got.Protected && len(s.Waiting) > 0 && s.Model == nil:
			got.Interfaces, got.LatestModel, got.Provisioning = sim.set.Interfaces, true, lb.Succeeded
			sim.was[got.ID] = foreign(sim.set.Interfaces)
		default:
			got.Provisioning = lb.Succeeded
		}
	}
}

func (sim *simulation) instanceByID(id string) *lb.Instance {
	return &sim.instances[slices.IndexFunc(sim.instances, func(i lb.Instance) bool { return i.ID == id })]
}

// For any scale set the steps end, nodes are in their pools, foreign pools are unchanged, and no
// instance gets a foreign change.
func TestStepsComeToAnEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) string {
			return rapid.SampledFrom([]string{"", k8s, "o/x", "o/x kubernetes/k8s", "kubernetes/k8s o/y"}).Draw(t, label)
		}
		p := &simulation{foreign: map[string]bool{}, was: map[string][]string{}, set: scaleSet(rapid.SampledFrom([]lb.UpgradeMode{lb.UpgradeManual, lb.UpgradeAutomatic, lb.UpgradeRolling}).Draw(t, "mode"), some("model"))}
		known := nic.ScaleSetState{UpToDate: map[string]bool{}, UpgradeTimedOut: map[string]bool{}}
		members, nodes := "", ""
		for _, id := range []string{"0", "1", "2", "3"} {
			i := lb.Instance{ScaleSet: blue, ID: id, Interfaces: interfaces(some("instance")), LatestModel: rapid.Bool().Draw(t, "latest"), Protected: rapid.Bool().Draw(t, "protected"),
				Provisioning: rapid.SampledFrom([]lb.Provisioning{lb.Succeeded, lb.Succeeded, lb.Updating, "Creating", lb.Failed, lb.Deleting}).Draw(t, "state")}
			p.instances = append(p.instances, i)
			p.was[id] = foreign(i.Interfaces)
			known.UpToDate[id] = i.LatestModel
			p.foreign[id] = !i.LatestModel
			switch rapid.IntRange(0, 2).Draw(t, "is") {
			case 0:
				members += " " + id
			case 1:
				nodes += " " + id
			}
		}
		wasModel := foreign(p.set.Interfaces)
		want, own := newDesired(members, nodes, ""), nic.NewManagedPools(nil, poolIDs(k8s))
		rounds := 0
		for ; ; rounds++ {
			steps := nic.PlanScaleSet(p.set, p.instances, want, own, known)
			if steps.IsDone() {
				break
			}
			if rounds == 8 {
				t.Fatalf("no end: %s", formatPlan(steps))
			}
			for _, i := range p.instances {
				known.UpgradeTimedOut[i.ID] = rounds > 4
			}
			p.apply(t, steps)
		}
		if got := formatPools(want.ModelPools(blue, p.set.Interfaces)); got != managedPoolNames(p.set.Interfaces) || !slices.Equal(foreign(p.set.Interfaces), wasModel) {
			t.Fatalf("the model is in %v", names(p.set.Interfaces[0].IPConfigurations[0].Pools))
		}
		for _, i := range p.instances {
			m := instance(i.ID)
			if i.Provisioning == lb.Deleting {
				continue
			}
			if want.IsNode(m) && managedPoolNames(i.Interfaces) != formatPools(want.MachinePools(m)) {
				t.Fatalf("instance %s is in %q", i.ID, managedPoolNames(i.Interfaces))
			}
			if !slices.Equal(foreign(i.Interfaces), p.was[i.ID]) {
				t.Fatalf("foreign pools of instance %s were %v and are %v", i.ID, p.was[i.ID], foreign(i.Interfaces))
			}
		}
		if p.writes > 0 && !nic.PlanScaleSet(p.set, p.instances, want, own, known).IsDone() {
			t.Fatal("what is done is not done a second time")
		}
	})
}

func foreign(i []lb.InterfaceConfiguration) []string {
	return slices.DeleteFunc(slices.Clone(i[0].IPConfigurations[0].Pools), func(id string) bool { return id == pool(k8s).String() })
}

// managedPoolNames names the managed pools.
func managedPoolNames(i []lb.InterfaceConfiguration) string {
	return names(slices.DeleteFunc(slices.Clone(i[0].IPConfigurations[0].Pools), func(id string) bool { return id != pool(k8s).String() }))
}
