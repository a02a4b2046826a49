// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// bySet is the filter by which the machines of a flexible scale set are found; no other is known.
var bySet = regexp.MustCompile(`^\s*'?virtualMachineScaleSet/id'?\s+eq\s+'?([^']+?)'?\s*$`)

// listed tells which resources a list has.
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

// merged is a body with what a PATCH says: objects are merged, all else is replaced, and null
// takes away.
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

// resize makes and removes machines of a uniform scale set when a write of it is done, until
// there are as many as its SKU says. One without a model or a capacity is left alone.
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
