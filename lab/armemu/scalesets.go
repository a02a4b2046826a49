// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

var scaleSetFilter = regexp.MustCompile(`^\s*'?virtualMachineScaleSet/id'?\s+eq\s+'?([^']+?)'?\s*$`)

func parseFilter(r route, filter string) (func(*aggregate) bool, *Problem) {
	if filter == "" || r.id.root != virtualMachineKind {
		return func(*aggregate) bool { return true }, nil
	}
	set := scaleSetFilter.FindStringSubmatch(filter)
	if set == nil {
		return nil, badRequest("InvalidFilterInQueryString", "The emulator models the filter 'virtualMachineScaleSet/id' eq '…' only, not "+filter+".")
	}
	return func(agg *aggregate) bool {
		return sameName(stringField(objectField(propertyFields(agg.body), "virtualMachineScaleSet"), "id"), set[1])
	}, nil
}

// mergePatch merges objects, replaces other values, and deletes null ones.
func mergePatch(body, patch fields) fields {
	out := maps.Clone(body)
	if out == nil {
		out = fields{}
	}
	for key, v := range patch {
		there, isObject := out[key].(fields)
		sent, alike := v.(fields)
		switch {
		case v == nil:
			delete(out, key)
		case isObject && alike:
			out[key] = mergePatch(there, sent)
		default:
			out[key] = v
		}
	}
	return out
}

// scaleInstances ignores scale sets without a model or capacity.
func (e *Emulator) scaleInstances(set *aggregate, at time.Time) {
	want, given := intField(objectField(set.body, "sku"), "capacity")
	if set.id.root != scaleSetKind || !given || isFlexible(set.body) || objectField(propertyFields(set.body), machineProfile) == nil {
		return
	}
	instances := e.scaleSetInstances(set.id)
	next := 0
	if len(instances) > 0 {
		next = instanceNumber(instances[len(instances)-1]) + 1
	}
	for range want - len(instances) {
		e.createInstance(set, next, at)
		next++
	}
	for _, agg := range slices.Backward(instances[min(max(want, 0), len(instances)):]) {
		e.endOperation(agg, "the scale set is made smaller")
		delete(e.aggregates, agg.id.key())
		e.updateReferences(agg.id, agg.body, nil)
		e.updateDataPlane(agg.id, at)
	}
}

func (e *Emulator) createInstance(set *aggregate, n int, at time.Time) {
	id := resourceID{
		subscription: set.id.subscription, group: set.id.group,
		root: instanceKind, parent: set.id.name, name: strconv.Itoa(n),
	}
	body := fields{"name": id.name, "location": set.body["location"], "properties": fields{}}
	agg := &aggregate{id: id, state: stateSucceeded, lastWritten: id}
	e.aggregates[id.key()] = agg
	agg.body = e.allocateAddresses(id, withModelInterfaces(set.body, body))
	agg.model = modelHash(set.body)
	e.renewEtag(agg)
	e.updateReferences(id, nil, agg.body)
	e.updateDataPlane(id, at)
}
