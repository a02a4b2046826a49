// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"slices"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/nic"
)

// The phases of a migration that is taken back.
const (
	Rejoin Phase = "Rejoin" // machines join the pools again that they have left
	Undone Phase = "Undone"
)

// OneWay says why a migration cannot be taken back; empty while it can.
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

// Undo returns what comes next of taking a migration back. Each step is found from the journal and from what Azure shows
// alone, as those of Next are. Addresses are where they were, for no load balancer has gone yet; public IPs that are
// Static by now stay so. Stops of its last step, Undone, are machines that cannot be put back any more; those of another one
// say why nothing can.
func Undo(j Journal, seen Seen) Steps {
	s := Steps{Phase: Rejoin}
	if until, why := j.WayBack(seen); until == "" {
		s.stop("it cannot be taken back: " + why)
		return s
	}
	if j.Members == nil {
		return Steps{Phase: Undone} // no machine has left
	}
	interfaces := map[string]*lb.NetworkInterface{}
	for at := range seen.Interfaces {
		interfaces[seen.Interfaces[at].ID.Key()] = &seen.Interfaces[at]
	}
	var missing []string
	for _, of := range j.Members.Interfaces {
		for _, name := range of.Names {
			missing = append(missing, s.rejoin(*j.Members, name, interfaces[of.id(name).Key()], of.In)...)
		}
	}
	for _, of := range j.Members.ScaleSets {
		missing = append(missing, s.rejoinSet(*j.Members, of, seen)...)
	}
	if s.idle() {
		return Steps{Phase: Undone, Stops: missing}
	}
	return s
}

// rejoin adds what it takes to have a network interface be where it was; nil is one that is not there.
func (s *Steps) rejoin(m Members, name string, is *lb.NetworkInterface, in Places) (missing []string) {
	what := "network interface " + name
	if is == nil || is.Provisioning == lb.Deleting {
		return []string{what + " is gone"}
	}
	shown := *is
	next, changed := m.joined([]lb.InterfaceConfiguration{shown.InterfaceConfiguration}, "", in)
	switch {
	case !changed && shown.Provisioning != lb.Failed: // what a failed write shows may not be in force
	case busy(shown.Provisioning):
		s.wait(what + " is " + string(shown.Provisioning))
	default:
		shown.InterfaceConfiguration = next[0]
		s.Interfaces = append(s.Interfaces, shown)
	}
	return in.lost(what, "", shown.InterfaceConfiguration)
}

// rejoinSet adds what it takes to have a scale set be where it was: its model first, else the next instance would come
// without its pools.
func (s *Steps) rejoinSet(m Members, of SetMembers, seen Seen) (missing []string) {
	at := slices.IndexFunc(seen.ScaleSets, func(set ScaleSet) bool { return set.ID.Key() == of.ID.Key() })
	what := "scale set " + of.ID.Name
	if at < 0 || seen.ScaleSets[at].Provisioning == lb.Deleting {
		return []string{what + " is gone"}
	}
	set := seen.ScaleSets[at]
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
		if why := m.rejoinInstance(&steps, of, set, i); why != "" {
			s.wait(why)
		}
	}
	if len(steps.Upgrade)+len(steps.Write) > 0 {
		s.ScaleSets = append(s.ScaleSets, SetSteps{ID: set.ID, Steps: steps})
	}
	return missing
}

// rejoinInstance adds what it takes to have an instance be where it was, or returns what is waited for. The model of
// its scale set is as it was.
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

// of is where an instance was, and whether that is where its model was.
func (of SetMembers) of(instance string) (in Places, asModel bool) {
	for _, o := range of.Others {
		if slices.Contains(o.IDs, instance) {
			return o.In, false
		}
	}
	return of.Model, true
}

// joined returns interfaces that are in the pools of these places, and in no other one of Pools, and whether that
// changes them. All other pools stay.
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

// lost says which IP configurations were in pools and are not there any more.
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

// busy reports whether Azure is at work on a resource: what it shows may be taken back yet.
func busy(p lb.Provisioning) bool { return p != "" && p != lb.Succeeded && p != lb.Failed }
