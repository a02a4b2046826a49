// SPDX-License-Identifier: Apache-2.0

package schedule

import "testing"

// A change for the same Service absorbs the fill, and keeps its urgency.
func TestAFillCoalesces(t *testing.T) {
	op := Operation{Ref: Ref{Name: "web"}, Pool: web, Service: ServiceName{Name: "web"}, QueuedAt: seconds(0)}
	all := MergeOperations([]Operation{op}, op.Subject().NewFill(seconds(1)))
	if len(all) != 1 || !all[0].New || !all[0].QueuedAt.Equal(seconds(0)) || !all[0].ChangedAt.Equal(seconds(1)) {
		t.Errorf("%+v", all)
	}
	nobodys := Operation{Ref: op.Ref, Pool: web, New: true, QueuedAt: seconds(0)}
	if all = MergeOperations([]Operation{nobodys}, op); len(all) != 1 || !all[0].New || all[0].Service != op.Service {
		t.Errorf("%+v", all)
	}
}

// A queued operation without a Service becomes the change of the Service that returned.
func TestAChangeTakesThePlaceOfARemoval(t *testing.T) {
	removal := Operation{Ref: Ref{Name: "web"}, Pool: web, QueuedAt: seconds(1), ChangedAt: seconds(1)}
	back := Operation{Ref: Ref{Name: "web"}, Pool: web, Service: ServiceName{Name: "web"}, QueuedAt: seconds(5), ChangedAt: seconds(5)}
	got := MergeOperations([]Operation{removal}, back)
	if len(got) != 1 || got[0].Service != back.Service || !got[0].QueuedAt.Equal(seconds(1)) || !got[0].ChangedAt.Equal(seconds(1)) {
		t.Errorf("%+v", got)
	}
	if got = MergeOperations([]Operation{back}, removal); len(got) != 2 {
		t.Errorf("a removal stays beside the change of a Service that may be gone: %+v", got)
	}
	retried := removal
	retried.RetryCount = 1
	if got = MergeOperations([]Operation{retried}, back); len(got) != 2 {
		t.Errorf("one that has consumed a retry keeps its counter: %+v", got)
	}
}

// The number of waiting changes survives merging.
func TestChangesAreCounted(t *testing.T) {
	nobodys := Operation{Ref: Ref{Name: "web"}, Pool: web, QueuedAt: seconds(0)}
	one, other := nobodys, nobodys
	one.Service, other.Service = ServiceName{Name: "web"}, ServiceName{Name: "other"}
	all := MergeOperations(nil, nobodys, nobodys, one, one, other)
	if g := NewGroup("p", all, History{}); len(all) != 2 || g.ChangeCount != 5 {
		t.Errorf("%d operations stand for %d changes", len(all), g.ChangeCount)
	}
}
