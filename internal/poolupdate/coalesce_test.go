// SPDX-License-Identifier: Apache-2.0

package poolupdate

import "testing"

// A change that speaks for the same Service stands for the fill, and hurries all the same.
func TestAFillCoalesces(t *testing.T) {
	op := Operation{Ref: Ref{Name: "web"}, Pool: web, Service: ServiceName{Name: "web"}, queuedAt: seconds(0)}
	all := coalesce([]Operation{op}, op.asFill(seconds(1)))
	if len(all) != 1 || !all[0].New || !all[0].queuedAt.Equal(seconds(0)) || !all[0].ChangedAt.Equal(seconds(1)) {
		t.Errorf("%+v", all)
	}
	nobodys := Operation{Ref: op.Ref, Pool: web, New: true, queuedAt: seconds(0)}
	if all = coalesce([]Operation{nobodys}, op); len(all) != 1 || !all[0].New || all[0].Service != op.Service {
		t.Errorf("%+v", all)
	}
}

// What is queued for nobody becomes the change of the Service that came back.
func TestAChangeTakesThePlaceOfARemoval(t *testing.T) {
	removal := Operation{Ref: Ref{Name: "web"}, Pool: web, queuedAt: seconds(1), ChangedAt: seconds(1)}
	back := Operation{Ref: Ref{Name: "web"}, Pool: web, Service: ServiceName{Name: "web"}, queuedAt: seconds(5), ChangedAt: seconds(5)}
	got := coalesce([]Operation{removal}, back)
	if len(got) != 1 || got[0].Service != back.Service || !got[0].queuedAt.Equal(seconds(1)) || !got[0].ChangedAt.Equal(seconds(1)) {
		t.Errorf("%+v", got)
	}
	if got = coalesce([]Operation{back}, removal); len(got) != 2 {
		t.Errorf("a removal stays beside the change of a Service that may be gone: %+v", got)
	}
	retried := removal
	retried.retryCount = 1
	if got = coalesce([]Operation{retried}, back); len(got) != 2 {
		t.Errorf("one that has consumed a retry keeps its counter: %+v", got)
	}
}
