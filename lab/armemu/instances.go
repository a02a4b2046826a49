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

// Instances of a uniform scale set have their own etags and operations. The scale set does not show
// them.

func (e *Emulator) scaleSetInstances(set resourceID) []*aggregate {
	var aggregates []*aggregate
	for _, agg := range e.sortedAggregates() {
		if parent, below := agg.id.parentID(); below && parent.key() == set.key() {
			aggregates = append(aggregates, agg)
		}
	}
	slices.SortStableFunc(aggregates, func(a, b *aggregate) int { return cmp.Compare(instanceNumber(a), instanceNumber(b)) })
	return aggregates
}

func instanceNumber(agg *aggregate) int {
	n, err := strconv.Atoi(agg.id.name)
	if err != nil {
		return -1 // a seed may use any name
	}
	return n
}

func (e *Emulator) removeInstances(set resourceID) {
	if set.root != scaleSetKind {
		return
	}
	for _, agg := range e.scaleSetInstances(set) {
		e.endOperation(agg, "the scale set is deleted")
		delete(e.aggregates, agg.id.key())
	}
}

func inactiveInstance(id string) *Problem {
	return &Problem{
		Status: http.StatusBadRequest, Code: "InvalidParameter",
		Message: fmt.Sprintf("The provided instanceId %s is not an active Virtual Machine Scale Set VM instanceId.", id),
	}
}

// renderInstance removes the addresses, which only the network interfaces show.
func (e *Emulator) renderInstance(agg *aggregate, out, props fields) {
	out["instanceId"] = agg.id.name
	props["latestModelApplied"] = e.hasLatestModel(agg)
	if _, given := props[instanceProfile]; given {
		props[instanceProfile] = mapIPConfigs(objectField(props, instanceProfile), func(_ string, c fields) fields {
			return withField(c, "properties", withoutFields(propertyFields(c), "privateIPAddress"))
		})
	}
}

func (e *Emulator) hasLatestModel(agg *aggregate) bool {
	parent, _ := agg.id.parentID()
	set := e.aggregates[parent.key()]
	return set != nil && agg.model == modelHash(set.body)
}

func mapIPConfigs(profile fields, f func(nic string, config fields) fields) fields {
	list := objectList(profile, profileNICs)
	if len(list) == 0 {
		return profile
	}
	for i, nic := range list {
		configs := objectList(propertyFields(nic), ipConfigKind.collection)
		if len(configs) == 0 {
			continue
		}
		for j, c := range configs {
			configs[j] = f(stringField(nic, "name"), c)
		}
		list[i] = withField(nic, "properties", withField(propertyFields(nic), ipConfigKind.collection, toArray(configs)))
	}
	return withField(profile, profileNICs, toArray(list))
}

// instanceIPConfigs accepts an instance's properties or a scale set's model.
func instanceIPConfigs(id string, props fields) iter.Seq2[string, fields] {
	profile := objectField(props, instanceProfile)
	if model := objectField(props, machineProfile); model != nil {
		profile = objectField(model, "networkProfile")
	}
	return func(yield func(string, fields) bool) {
		for _, nic := range objectList(profile, profileNICs) {
			for _, c := range objectList(propertyFields(nic), ipConfigKind.collection) {
				if !yield(id+"/networkInterfaces/"+stringField(nic, "name")+"/"+ipConfigKind.collection+"/"+stringField(c, "name"), propertyFields(c)) {
					return
				}
			}
		}
	}
}

func withIPConfigs(body fields, f func(nic string, config fields) fields) fields {
	profile := objectField(propertyFields(body), instanceProfile)
	if profile == nil {
		return body
	}
	return withField(body, "properties", withField(propertyFields(body), instanceProfile, mapIPConfigs(profile, f)))
}

// retainInstanceAddresses retains addresses while the IP configuration remains in its subnet.
func retainInstanceAddresses(before, after fields) fields {
	old := map[string]fields{}
	for id, props := range instanceIPConfigs("", propertyFields(before)) {
		old[id] = props
	}
	return withIPConfigs(after, func(nic string, c fields) fields {
		props := propertyFields(c)
		previous := old["/networkInterfaces/"+nic+"/"+ipConfigKind.collection+"/"+stringField(c, "name")]
		addr := stringField(previous, "privateIPAddress")
		if addr == "" || referenceID(previous, "subnet") != referenceID(props, "subnet") || ipVersion(previous) != ipVersion(props) {
			return c
		}
		return withField(c, "properties", withField(props, "privateIPAddress", addr))
	})
}

func (e *Emulator) allocateInstance(id resourceID, body fields) fields {
	var own []fields
	for _, props := range instanceIPConfigs("", propertyFields(body)) {
		own = append(own, fields{"properties": props})
	}
	taken := map[string]map[netip.Addr]bool{}
	return withIPConfigs(body, func(_ string, c fields) fields {
		props := propertyFields(c)
		subnet := referenceID(props, "subnet")
		if subnet == "" || stringField(props, "privateIPAddress") != "" {
			return c
		}
		if taken[subnet] == nil {
			taken[subnet] = e.usedPrivateIPs(id, subnet, own)
		}
		addr := firstUsable(e.subnetPrefix(subnet, ipVersion(props)), taken[subnet])
		if !addr.IsValid() {
			return c
		}
		taken[subnet][addr] = true
		return withField(c, "properties", withField(props, "privateIPAddress", addr.String()))
	})
}

// snapshotBody includes what responses omit.
func (e *Emulator) snapshotBody(agg *aggregate) fields {
	out := e.renderExpanded(agg, agg.id, "")
	props := propertyFields(out)
	for _, key := range []string{instanceProfile, instanceView} {
		if v, given := propertyFields(agg.body)[key]; given {
			props[key] = v
		}
	}
	return out
}

func (e *Emulator) installModel(agg *aggregate, body fields) {
	parent, below := agg.id.parentID()
	if !below || propertyFields(body)["latestModelApplied"] == false {
		agg.model = ""
		return
	}
	agg.model = modelHash(e.aggregates[parent.key()].body)
}
