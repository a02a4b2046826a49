// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// After a lost watch, a recreated slice arrives as an update.
func TestSliceMadeAnewIsAChange(t *testing.T) {
	node := "n1"
	slice := func(uid types.UID, kind discoveryv1.AddressType) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "web-1", UID: uid},
			AddressType: kind, Endpoints: []discoveryv1.Endpoint{{NodeName: &node}},
		}
	}
	r := newReconciler(t)
	before, after := slice("a", discoveryv1.AddressTypeIPv4), slice("b", discoveryv1.AddressTypeIPv6)
	if !r.sliceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("another slice of the name passes for the old one")
	}
	if r.sliceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before.DeepCopy()}) {
		t.Error("an update that changes nothing passes for a change")
	}
}
