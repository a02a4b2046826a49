// SPDX-License-Identifier: Apache-2.0

package armemu

import (
	"cmp"
	"slices"
	"strconv"
)

// The machines of a uniform scale set are resources of their own below it: each has an etag
// and operations of its own. The scale set shows none of them.

// instancesOf are the machines of a scale set in the order of their numbers.
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
		return -1 // a seed may call it anything
	}
	return n
}

// removeBelow takes the machines of a scale set along that is gone. What runs on them ends.
func (e *Emulator) removeBelow(set resourceID) {
	if set.root != scaleSetKind {
		return
	}
	for _, agg := range e.instancesOf(set) {
		e.endRunning(agg, "the scale set is deleted")
		delete(e.aggregates, agg.id.key())
	}
}
