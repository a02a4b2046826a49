// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
)

// Instances of a uniform scale set are child resources with their own etags and operations. The
// scale set does not show them.

// instancesOf returns the instances of a scale set, sorted by number.
func (e *Emulator) instancesOf(set resourceID) []*aggregate {
	var all []*aggregate
	for _, agg := range e.sorted() {
		if parent, below := agg.id.above(); below && parent.key() == set.key() {
			all = append(all, agg)
		}
	}
	slices.SortStableFunc(all, func(a, b *aggregate) int { return cmp.Compare(instanceNumber(a), instanceNumber(b)) })
	return all
}

func instanceNumber(agg *aggregate) int {
	n, err := strconv.Atoi(agg.id.name)
	if err != nil {
		return -1 // a seed may use any name
	}
	return n
}

// removeBelow deletes the instances of a deleted scale set and ends their operations.
func (e *Emulator) removeBelow(set resourceID) {
	if set.root != scaleSetKind {
		return
	}
	for _, agg := range e.instancesOf(set) {
		e.endRunning(agg, "the scale set is deleted")
		delete(e.aggregates, agg.id.key())
	}
}

// notActive rejects an unknown instance ID.
func notActive(id string) *Problem {
	return &Problem{
		Status: http.StatusBadRequest, Code: "InvalidParameter",
		Message: fmt.Sprintf("The provided instanceId %s is not an active Virtual Machine Scale Set VM instanceId.", id),
	}
}

// showInstance adds what the scale set knows about an instance, and removes the addresses, which
// only the network interfaces show.
func (e *Emulator) showInstance(agg *aggregate, out, props fields) {
	out["instanceId"] = agg.id.name
	props["latestModelApplied"] = e.latestModel(agg)
	if _, given := props[profileOfOne]; given {
		props[profileOfOne] = mapConfigs(object(props, profileOfOne), func(_ string, c fields) fields {
			return with(c, "properties", without(properties(c), "privateIPAddress"))
		})
	}
}

// latestModel reports whether an instance has its scale set's current model.
func (e *Emulator) latestModel(agg *aggregate) bool {
	parent, _ := agg.id.above()
	set := e.aggregates[parent.key()]
	return set != nil && agg.model == modelOf(set.body)
}

// mapConfigs returns the network profile with f applied to each IP configuration.
func mapConfigs(profile fields, f func(nic string, config fields) fields) fields {
	list := objects(profile, nicsOfProfile)
	if len(list) == 0 {
		return profile
	}
	for i, nic := range list {
		configs := objects(properties(nic), ipConfigKind.collection)
		if len(configs) == 0 {
			continue
		}
		for j, c := range configs {
			configs[j] = f(text(nic, "name"), c)
		}
		list[i] = with(nic, "properties", with(properties(nic), ipConfigKind.collection, array(configs)))
	}
	return with(profile, nicsOfProfile, array(list))
}

// memberConfigs returns the IP configurations of an instance or of a scale set's model, by ID.
func memberConfigs(id string, props fields) iter.Seq2[string, fields] {
	profile := object(props, profileOfOne)
	if model := object(props, machineProfile); model != nil {
		profile = object(model, "networkProfile")
	}
	return func(yield func(string, fields) bool) {
		for _, nic := range objects(profile, nicsOfProfile) {
			for _, c := range objects(properties(nic), ipConfigKind.collection) {
				if !yield(id+"/networkInterfaces/"+text(nic, "name")+"/"+ipConfigKind.collection+"/"+text(c, "name"), properties(c)) {
					return
				}
			}
		}
	}
}

// withConfigs returns the body of an instance with f applied to each IP configuration.
func withConfigs(body fields, f func(nic string, config fields) fields) fields {
	profile := object(properties(body), profileOfOne)
	if profile == nil {
		return body
	}
	return with(body, "properties", with(properties(body), profileOfOne, mapConfigs(profile, f)))
}

// keepInstanceAddresses retains the address of an IP configuration that remains in its subnet.
func keepInstanceAddresses(before, after fields) fields {
	had := map[string]fields{}
	for id, props := range memberConfigs("", properties(before)) {
		had[id] = props
	}
	return withConfigs(after, func(nic string, c fields) fields {
		props := properties(c)
		was := had["/networkInterfaces/"+nic+"/"+ipConfigKind.collection+"/"+text(c, "name")]
		addr := text(was, "privateIPAddress")
		if addr == "" || reference(was, "subnet") != reference(props, "subnet") || versionOf(was) != versionOf(props) {
			return c
		}
		return with(c, "properties", with(props, "privateIPAddress", addr))
	})
}

// allocateInstance gives every IP configuration of an instance without an address the lowest free
// one of its subnet.
func (e *Emulator) allocateInstance(id resourceID, body fields) fields {
	var own []fields
	for _, props := range memberConfigs("", properties(body)) {
		own = append(own, fields{"properties": props})
	}
	taken := map[string]map[netip.Addr]bool{}
	return withConfigs(body, func(_ string, c fields) fields {
		props := properties(c)
		subnet := reference(props, "subnet")
		if subnet == "" || text(props, "privateIPAddress") != "" {
			return c
		}
		if taken[subnet] == nil {
			taken[subnet] = e.privateTaken(id, subnet, own)
		}
		addr := firstUsable(e.subnetPrefix(subnet, versionOf(props)), taken[subnet])
		if !addr.IsValid() {
			return c
		}
		taken[subnet][addr] = true
		return with(c, "properties", with(props, "privateIPAddress", addr.String()))
	})
}

// whole returns a resource for a snapshot, including what responses omit.
func (e *Emulator) whole(agg *aggregate) fields {
	out := e.shown(agg, agg.id, "")
	props := properties(out)
	for _, key := range []string{profileOfOne, instanceView} {
		if v, given := properties(agg.body)[key]; given {
			props[key] = v
		}
	}
	return out
}

// installModel marks a seeded instance as up to date unless its body has another model state.
func (e *Emulator) installModel(agg *aggregate, body fields) {
	parent, below := agg.id.above()
	if !below || properties(body)["latestModelApplied"] == false {
		agg.model = ""
		return
	}
	agg.model = modelOf(e.aggregates[parent.key()].body)
}
