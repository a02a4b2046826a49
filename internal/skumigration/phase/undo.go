// SPDX-License-Identifier: Apache-2.0

package phase

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// The phases of an undo.
const (
	PhaseReattach Phase = "Rejoin" // machines rejoin their former pools
	PhaseUndone   Phase = "Undone"
)

// NoUndoReason returns "" if an undo is possible.
func (j Journal) NoUndoReason() string {
	switch {
	case j.Done:
		return "it has come to its end"
	case !j.IsOpen():
		return "none is under way"
	case j.FinalReason != "":
		return j.FinalReason
	case j.TrafficStopped && j.Members == nil:
		return "machines have left before anybody wrote down where they were"
	}
	return ""
}

// NextUndoSteps returns the steps of an undo, like [NextSteps]. No load balancer has been deleted yet, so
// addresses are unchanged; public IPs stay Static. In the last step StopReasons are machines that
// can't be restored; before, they block the undo.
func NextUndoSteps(j Journal, snapshot Snapshot) Steps {
	s := Steps{Phase: PhaseReattach}
	if until, reason := j.UndoLimit(snapshot); until == "" {
		s.addStop("it cannot be taken back: " + reason)
		return s
	}
	if j.Members == nil {
		return Steps{Phase: PhaseUndone} // no machine has left
	}
	interfaces := map[string]*lb.NetworkInterface{}
	for at := range snapshot.Interfaces {
		interfaces[snapshot.Interfaces[at].ID.Key()] = &snapshot.Interfaces[at]
	}
	var missing []string
	for _, of := range j.Members.Interfaces {
		for _, name := range of.Names {
			missing = append(missing, s.reattachInterface(*j.Members, name, interfaces[of.resourceID(name).Key()], of.Pools)...)
		}
	}
	for _, of := range j.Members.ScaleSets {
		missing = append(missing, s.reattachScaleSet(*j.Members, of, snapshot)...)
	}
	if s.isEmpty() {
		return Steps{Phase: PhaseUndone, StopReasons: missing}
	}
	return s
}

// reattachInterface takes nil for a network interface that no longer exists.
func (s *Steps) reattachInterface(m Members, name string, nic *lb.NetworkInterface, in PoolIndexes) (missing []string) {
	resource := "network interface " + name
	if nic == nil || nic.Provisioning == lb.Deleting {
		return []string{resource + " is gone"}
	}
	shown := *nic
	next, changed := m.withPools([]lb.InterfaceConfiguration{shown.InterfaceConfiguration}, "", in)
	switch {
	case !changed && shown.Provisioning != lb.Failed: // after a failed write, the state may not be in effect
	case isUpdating(shown.Provisioning):
		s.addWait(resource + " is " + string(shown.Provisioning))
	default:
		shown.InterfaceConfiguration = next[0]
		s.Interfaces = append(s.Interfaces, shown)
	}
	return in.missingConfigurations(resource, "", shown.InterfaceConfiguration)
}

// reattachScaleSet restores the model first, so that new instances join the pools.
func (s *Steps) reattachScaleSet(m Members, of ScaleSetMembers, snapshot Snapshot) (missing []string) {
	at := slices.IndexFunc(snapshot.ScaleSets, func(set ScaleSet) bool { return set.ID.Key() == of.ID.Key() })
	name := "scale set " + of.ID.Name
	if at < 0 || snapshot.ScaleSets[at].Provisioning == lb.Deleting {
		return []string{name + " is gone"}
	}
	set := snapshot.ScaleSets[at]
	missing = of.Model.missingConfigurations(name, scaleSetSeparator, set.Interfaces...)
	next, changed := m.withPools(set.Interfaces, scaleSetSeparator, of.Model)
	switch {
	case changed && isUpdating(set.Provisioning):
		s.addWait(name + " is " + string(set.Provisioning))
		return missing
	case changed:
		model := set.ScaleSet
		model.Interfaces = next
		s.ScaleSets = append(s.ScaleSets, ScaleSetSteps{ID: set.ID, ScaleSetPlan: nic.ScaleSetPlan{Model: &model}})
		return missing
	}
	var steps nic.ScaleSetPlan
	for _, i := range set.Instances {
		if reason := m.reattachInstance(&steps, of, set, i); reason != "" {
			s.addWait(reason)
		}
	}
	if len(steps.Upgrade)+len(steps.Write) > 0 {
		s.ScaleSets = append(s.ScaleSets, ScaleSetSteps{ID: set.ID, ScaleSetPlan: steps})
	}
	return missing
}

// reattachInstance expects a restored model. It returns what to wait for.
func (m Members) reattachInstance(steps *nic.ScaleSetPlan, of ScaleSetMembers, set ScaleSet, i lb.Instance) (wait string) {
	in, asModel := of.instancePools(i.ID)
	next, changed := m.withPools(i.Interfaces, scaleSetSeparator, in)
	upgrades := asModel && !i.LatestModel && !i.Protected
	this := fmt.Sprintf("instance %s of scale set %s", i.ID, set.ID.Name)
	switch {
	case i.Provisioning == lb.Deleting, !changed && (i.Provisioning != lb.Failed || len(in) == 0):
	case isUpdating(i.Provisioning):
		return this + " is " + string(i.Provisioning)
	case upgrades && set.UpgradeMode != lb.UpgradeManual && !set.Known.UpgradeTimedOut[i.ID]:
		return this + " is not upgraded to the scale set's model yet, which its upgrade policy " + string(set.UpgradeMode) + " leaves to Azure"
	case upgrades && set.UpgradeMode == lb.UpgradeManual && set.Known.UpToDate[i.ID]:
		steps.Upgrade = append(steps.Upgrade, i.ID)
	default:
		i.Interfaces = next
		steps.Write = append(steps.Write, i)
	}
	return ""
}

// of also reports whether the pools are those of the model.
func (s ScaleSetMembers) instancePools(instance string) (in PoolIndexes, asModel bool) {
	for _, o := range s.Overrides {
		if slices.Contains(o.IDs, instance) {
			return o.Pools, false
		}
	}
	return s.Model, true
}

// withPools keeps pools that are not in Pools.
func (m Members) withPools(shown []lb.InterfaceConfiguration, prefix string, in PoolIndexes) (next []lb.InterfaceConfiguration, changed bool) {
	next = slices.Clone(shown)
	for at := range next {
		next[at].IPConfigurations = slices.Clone(next[at].IPConfigurations)
		for n := range next[at].IPConfigurations {
			c := &next[at].IPConfigurations[n]
			pools := m.mergePools(c.Pools, in[configurationKey(prefix, next[at], *c)])
			changed = changed || !slices.Equal(pools, c.Pools)
			c.Pools = pools
		}
	}
	return next, changed
}

func (m Members) mergePools(shown []string, wanted []int) []string {
	number := func(id string) int {
		return slices.IndexFunc(m.Pools, func(p string) bool { return strings.EqualFold(p, id) })
	}
	next := slices.DeleteFunc(slices.Clone(shown), func(id string) bool {
		at := number(id)
		return at >= 0 && !slices.Contains(wanted, at)
	})
	for _, at := range wanted {
		if !slices.ContainsFunc(next, func(id string) bool { return number(id) == at }) {
			next = append(next, m.Pools[at])
		}
	}
	return next
}

func (p PoolIndexes) missingConfigurations(owner, prefix string, interfaces ...lb.InterfaceConfiguration) (missing []string) {
	present := map[string]bool{}
	for _, i := range interfaces {
		for _, c := range i.IPConfigurations {
			present[configurationKey(prefix, i, c)] = true
		}
	}
	for name := range p {
		if !present[name] {
			missing = append(missing, owner+" has no IP configuration "+name+" any more")
		}
	}
	slices.Sort(missing)
	return missing
}

// isUpdating means that the state may still change.
func isUpdating(p lb.Provisioning) bool { return p != "" && p != lb.Succeeded && p != lb.Failed }
