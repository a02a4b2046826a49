// SPDX-License-Identifier: Apache-2.0

package schedule

import "testing"

// A change for the same Service absorbs the fill, and keeps its urgency.
func TestAFillCoalesces(t *testing.T) {
	op := Operation{Ref: Ref{Name: "web"}, Pool: web, Service: ServiceName{Name: "web"}, QueuedAt: seconds(0)}
	operations := MergeOperations([]Operation{op}, op.Subject().NewFill(seconds(1)))
	if len(operations) != 1 || !operations[0].FillsPool || !operations[0].QueuedAt.Equal(seconds(0)) || !operations[0].ChangedAt.Equal(seconds(1)) {
		t.Errorf("%+v", operations)
	}
	nobodys := Operation{Ref: op.Ref, Pool: web, FillsPool: true, QueuedAt: seconds(0)}
	if operations = MergeOperations([]Operation{nobodys}, op); len(operations) != 1 || !operations[0].FillsPool || operations[0].Service != op.Service {
		t.Errorf("%+v", operations)
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
	single, other := nobodys, nobodys
	single.Service, other.Service = ServiceName{Name: "web"}, ServiceName{Name: "other"}
	operations := MergeOperations(nil, nobodys, nobodys, single, single, other)
	if g := NewGroup("p", operations, History{}); len(operations) != 2 || g.ChangeCount != 5 {
		t.Errorf("%d operations stand for %d changes", len(operations), g.ChangeCount)
	}
}

// What a merged operation knows of the operations that it replaces.
func TestMergedOperationsKeepWhatIsUrgent(t *testing.T) {
	service := ServiceName{Name: "web"}
	for about, older := range map[string]Operation{
		"of the same Service": {Ref: Ref{Name: "web"}, Pool: web, Service: service, QueuedAt: seconds(1), ChangedAt: seconds(2)},
		"of none":             {Ref: Ref{Name: "web"}, Pool: web, QueuedAt: seconds(1), ChangedAt: seconds(2)},
	} {
		newer := Operation{Ref: Ref{Name: "web"}, Pool: web, Service: service, QueuedAt: seconds(5), ChangedAt: seconds(4), Impact: Impact{Starting: 1}}
		for _, set := range []func(*Operation) *bool{
			func(o *Operation) *bool { return &o.FillsPool }, func(o *Operation) *bool { return &o.OutOfSync }, func(o *Operation) *bool { return &o.Exempt },
		} {
			for _, of := range []string{"neither", "older", "newer", "both"} {
				a, b := older, newer
				*set(&a), *set(&b) = of == "older" || of == "both", of == "newer" || of == "both"
				operations := MergeOperations([]Operation{a}, b)
				if len(operations) != 1 || *set(&operations[0]) != (of != "neither") || operations[0].Service != service {
					t.Fatalf("%s, set in %s: %+v", about, of, operations)
				}
				if got := operations[0]; !got.QueuedAt.Equal(seconds(1)) || !got.ChangedAt.Equal(seconds(2)) || got.Impact != newer.Impact {
					t.Errorf("%s: %+v", about, got)
				}
			}
		}
	}
}

// Only the newest admin operation of a pool is kept, with the back-off of the one before.
func TestAdminOperationsMerge(t *testing.T) {
	member := Operation{Ref: Ref{Name: "web"}, Pool: web}
	failed := Operation{Ref: Ref{Name: "web"}, Pool: web, Admin: true, QueuedAt: seconds(1), ChangedAt: seconds(2), FailedAttempts: 3, retryAt: seconds(9), Impact: Impact{Stopping: 1}}
	newer := Operation{Ref: Ref{Name: "web"}, Pool: web, Admin: true, QueuedAt: seconds(5), ChangedAt: seconds(4), Impact: Impact{Stopping: 2}}
	operations := MergeOperations([]Operation{member, failed}, newer)
	if len(operations) != 2 || operations[0].Admin || operations[1].FailedAttempts != 3 || !operations[1].retryAt.Equal(seconds(9)) || !operations[1].QueuedAt.Equal(seconds(1)) || !operations[1].ChangedAt.Equal(seconds(2)) || operations[1].Impact != newer.Impact {
		t.Errorf("%+v", operations)
	}
	newer.Ref.UID = "of the next object"
	if operations = MergeOperations([]Operation{failed}, newer); len(operations) != 1 || operations[0].FailedAttempts != 0 || !operations[0].QueuedAt.Equal(seconds(5)) {
		t.Errorf("another object: %+v", operations)
	}
	if reset := failed.ResetRetries(); reset.RetryCount != 0 || !reset.retryAt.IsZero() || reset.FailedAttempts != 3 {
		t.Errorf("%+v", reset)
	}
}
