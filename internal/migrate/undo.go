// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// The phases of an undo.
const (
	Rejoin Phase = "Rejoin" // machines rejoin their former pools
	Undone Phase = "Undone"
)

// OneWay returns "" if an undo is possible.
func (j Journal) OneWay() string {
	switch {
	case j.Done:
		return "it has come to its end"
	case !j.Open():
		return "none is under way"
	case j.Final != "":
		return j.Final
	case j.Apart && j.Members == nil:
		return "machines have left before anybody wrote down where they were"
	}
	return ""
}

// Undo returns the steps of an undo, like [Next]. No load balancer has been deleted yet, so
// addresses are unchanged; public IPs stay Static. In the last step StopReasons are machines that
// can't be restored; before, they block the undo.
func Undo(j Journal, snapshot Seen) Steps {
	s := Steps{Phase: Rejoin}
	if until, reason := j.WayBack(snapshot); until == "" {
		s.stop("it cannot be taken back: " + reason)
		return s
	}
	if j.Members == nil {
		return Steps{Phase: Undone} // no machine has left
	}
	interfaces := map[string]*lb.NetworkInterface{}
	for at := range snapshot.Interfaces {
		interfaces[snapshot.Interfaces[at].ID.Key()] = &snapshot.Interfaces[at]
	}
	var missing []string
	for _, of := range j.Members.Interfaces {
		for _, name := range of.Names {
			missing = append(missing, s.rejoin(*j.Members, name, interfaces[of.id(name).Key()], of.In)...)
		}
	}
	for _, of := range j.Members.ScaleSets {
		missing = append(missing, s.rejoinSet(*j.Members, of, snapshot)...)
	}
	if s.idle() {
		return Steps{Phase: Undone, Stops: missing}
	}
	return s
}

// rejoin takes nil for a network interface that no longer exists.
func (s *Steps) rejoin(m Members, name string, is *lb.NetworkInterface, in Places) (missing []string) {
	what := "network interface " + name
	if is == nil || is.Provisioning == lb.Deleting {
		return []string{what + " is gone"}
	}
	shown := *is
	next, changed := m.joined([]lb.InterfaceConfiguration{shown.InterfaceConfiguration}, "", in)
	switch {
	case !changed && shown.Provisioning != lb.Failed: // after a failed write, the state may not be in effect
	case busy(shown.Provisioning):
		s.wait(what + " is " + string(shown.Provisioning))
	default:
		shown.InterfaceConfiguration = next[0]
		s.Interfaces = append(s.Interfaces, shown)
	}
	return in.lost(what, "", shown.InterfaceConfiguration)
}

// rejoinSet restores the model first, so that new instances join the pools.
func (s *Steps) rejoinSet(m Members, of SetMembers, snapshot Seen) (missing []string) {
	at := slices.IndexFunc(snapshot.ScaleSets, func(set ScaleSet) bool { return set.ID.Key() == of.ID.Key() })
	what := "scale set " + of.ID.Name
	if at < 0 || snapshot.ScaleSets[at].Provisioning == lb.Deleting {
		return []string{what + " is gone"}
	}
	set := snapshot.ScaleSets[at]
	missing = of.Model.lost(what, ofSet, set.Interfaces...)
	next, changed := m.joined(set.Interfaces, ofSet, of.Model)
	switch {
	case changed && busy(set.Provisioning):
		s.wait(what + " is " + string(set.Provisioning))
		return missing
	case changed:
		model := set.ScaleSet
		model.Interfaces = next
		s.ScaleSets = append(s.ScaleSets, SetSteps{ID: set.ID, Steps: nic.Steps{Model: &model}})
		return missing
	}
	var steps nic.Steps
	for _, i := range set.Instances {
		if reason := m.rejoinInstance(&steps, of, set, i); reason != "" {
			s.wait(reason)
		}
	}
	if len(steps.Upgrade)+len(steps.Write) > 0 {
		s.ScaleSets = append(s.ScaleSets, SetSteps{ID: set.ID, Steps: steps})
	}
	return missing
}

// rejoinInstance expects a restored model. It returns what to wait for.
func (m Members) rejoinInstance(steps *nic.Steps, of SetMembers, set ScaleSet, i lb.Instance) (wait string) {
	in, asModel := of.of(i.ID)
	next, changed := m.joined(i.Interfaces, ofSet, in)
	upgrades := asModel && !i.LatestModel && !i.Protected
	this := fmt.Sprintf("instance %s of scale set %s", i.ID, set.ID.Name)
	switch {
	case i.Provisioning == lb.Deleting, !changed && (i.Provisioning != lb.Failed || len(in) == 0):
	case busy(i.Provisioning):
		return this + " is " + string(i.Provisioning)
	case upgrades && set.UpgradeMode != lb.UpgradeManual && !set.Known.Overdue[i.ID]:
		return this + " is not upgraded to the scale set's model yet, which its upgrade policy " + string(set.UpgradeMode) + " leaves to Azure"
	case upgrades && set.UpgradeMode == lb.UpgradeManual && set.Known.Level[i.ID]:
		steps.Upgrade = append(steps.Upgrade, i.ID)
	default:
		i.Interfaces = next
		steps.Write = append(steps.Write, i)
	}
	return ""
}

// of also reports whether the pools are those of the model.
func (of SetMembers) of(instance string) (in Places, asModel bool) {
	for _, o := range of.Others {
		if slices.Contains(o.IDs, instance) {
			return o.In, false
		}
	}
	return of.Model, true
}

// joined keeps pools that are not in Pools.
func (m Members) joined(shown []lb.InterfaceConfiguration, prefix string, in Places) (next []lb.InterfaceConfiguration, changed bool) {
	next = slices.Clone(shown)
	for at := range next {
		next[at].IPConfigurations = slices.Clone(next[at].IPConfigurations)
		for n := range next[at].IPConfigurations {
			c := &next[at].IPConfigurations[n]
			pools := m.poolsOf(c.Pools, in[placeName(prefix, next[at], *c)])
			changed = changed || !slices.Equal(pools, c.Pools)
			c.Pools = pools
		}
	}
	return next, changed
}

func (m Members) poolsOf(shown []string, wanted []int) []string {
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

func (p Places) lost(what, prefix string, interfaces ...lb.InterfaceConfiguration) (missing []string) {
	has := map[string]bool{}
	for _, i := range interfaces {
		for _, c := range i.IPConfigurations {
			has[placeName(prefix, i, c)] = true
		}
	}
	for name := range p {
		if !has[name] {
			missing = append(missing, what+" has no IP configuration "+name+" any more")
		}
	}
	slices.Sort(missing)
	return missing
}

// busy means that the state may still change.
func busy(p lb.Provisioning) bool { return p != "" && p != lb.Succeeded && p != lb.Failed }
