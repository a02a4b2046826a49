// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// bySet is the only supported filter of virtual machines.
var bySet = regexp.MustCompile(`^\s*'?virtualMachineScaleSet/id'?\s+eq\s+'?([^']+?)'?\s*$`)

// listed returns the predicate of a $filter.
func listed(r route, filter string) (func(*aggregate) bool, *Problem) {
	if filter == "" || r.id.root != virtualMachineKind {
		return func(*aggregate) bool { return true }, nil
	}
	set := bySet.FindStringSubmatch(filter)
	if set == nil {
		return nil, bad("InvalidFilterInQueryString", "The emulator models the filter 'virtualMachineScaleSet/id' eq '…' only, not "+filter+".")
	}
	return func(agg *aggregate) bool {
		return sameName(text(object(properties(agg.body), "virtualMachineScaleSet"), "id"), set[1])
	}, nil
}

// merged applies a PATCH to a body: objects are merged, other values replaced, and null deletes.
func merged(body, patch fields) fields {
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
			out[key] = merged(there, sent)
		default:
			out[key] = v
		}
	}
	return out
}

// resize creates or deletes instances of a uniform scale set after a write, until their number
// matches its SKU. It ignores scale sets without a model or capacity.
func (e *Emulator) resize(set *aggregate, at time.Time) {
	want, given := number(object(set.body, "sku"), "capacity")
	if set.id.root != scaleSetKind || !given || isFlexible(set.body) || object(properties(set.body), machineProfile) == nil {
		return
	}
	all := e.instancesOf(set.id)
	next := 0
	if len(all) > 0 {
		next = instanceNumber(all[len(all)-1]) + 1
	}
	for range want - len(all) {
		e.makeInstance(set, next, at)
		next++
	}
	for _, agg := range slices.Backward(all[min(max(want, 0), len(all)):]) {
		e.endRunning(agg, "the scale set is made smaller")
		delete(e.aggregates, agg.id.key())
		e.changed(agg.id, agg.body, nil)
		e.programmed(agg.id, at)
	}
}

func (e *Emulator) makeInstance(set *aggregate, n int, at time.Time) {
	id := resourceID{
		subscription: set.id.subscription, group: set.id.group,
		root: instanceKind, parent: set.id.name, name: strconv.Itoa(n),
	}
	body := fields{"name": id.name, "location": set.body["location"], "properties": fields{}}
	agg := &aggregate{id: id, state: stateSucceeded, touched: id}
	e.aggregates[id.key()] = agg
	agg.body = e.allocate(id, modelled(set.body, body))
	agg.model = modelOf(set.body)
	e.retag(agg)
	e.changed(id, nil, agg.body)
	e.programmed(id, at)
}
