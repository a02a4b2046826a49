// SPDX-License-Identifier: Apache-2.0

package services

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// A Service is reconciled when its endpoints start or stop taking traffic, not during rollouts.
func TestOnlyFirstAndLastEndpointReconcile(t *testing.T) {
	slice := func(ready ...bool) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
		for _, ok := range ready {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{NodeName: new("n1"), Conditions: discoveryv1.EndpointConditions{Ready: &ok}})
		}
		return s
	}
	p := trafficChanged()
	for _, tt := range []struct {
		about         string
		before, after *discoveryv1.EndpointSlice
		want          bool
	}{
		{"one becomes ready", slice(false), slice(true), true},
		{"the last one goes", slice(true), slice(), true},
		{"the last one is not ready any more", slice(true, false), slice(false, false), true},
		{"a rollout", slice(true, true), slice(true, false, true), false},
		{"none is ready", slice(false), slice(), false},
	} {
		if got := p.Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: %t", tt.about, got)
		}
	}
	for _, ready := range []bool{false, true} {
		if p.Create(event.CreateEvent{Object: slice(ready)}) != ready || p.Delete(event.DeleteEvent{Object: slice(ready)}) != ready {
			t.Errorf("a slice comes, or goes, whose endpoint is ready: %t", ready)
		}
	}
	if p.Create(event.CreateEvent{Object: slice(true), IsInInitialList: true}) {
		t.Error("each Service is looked at at the start anyway")
	}
}
