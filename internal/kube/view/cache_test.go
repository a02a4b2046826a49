// SPDX-License-Identifier: Apache-2.0

package view

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/adminstate"
)

// tainted is the node n1 with these taints, key=value.
func tainted(uid string, taints ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID(uid)}}
	for _, text := range taints {
		key, value, _ := strings.Cut(text, "=")
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// What nobody reads of a node is not kept, and nothing of its taints if they are left alone.
func TestWhatIsKeptOfANode(t *testing.T) {
	node := func() *corev1.Node {
		n := tainted("a", adminstate.KeyOutOfService, "leaves=x", "gpu=a100")
		n.Labels = map[string]string{"zone": "1"}
		n.Annotations = map[string]string{PreemptionAnnotation: "{}", "theirs": "x"}
		n.Spec.Taints[0].TimeAdded = new(metav1.Now())
		n.Spec.ProviderID, n.Spec.Unschedulable = "azure:///x", true
		return n
	}
	want := tainted("a", adminstate.KeyOutOfService, "leaves=x")
	want.Spec.ProviderID = "azure:///x"
	want.Labels, want.Annotations = map[string]string{"zone": "1"}, map[string]string{PreemptionAnnotation: "{}"}
	want.Spec.ProviderID = "azure:///x" // which machine it is
	got := node()
	stripNode(got, &adminstate.Signals{Further: []adminstate.Pattern{{Key: "leaves", AnyValue: true}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got = node()
	stripNode(got, nil)
	want.Annotations, want.Spec.Taints = nil, nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("off: %s", diff)
	}
}

// Of an endpoint its node and its conditions are kept, in memory that others share.
func TestWhatIsKeptOfASlice(t *testing.T) {
	conditions := []discoveryv1.EndpointConditions{
		{}, {Ready: new(true)}, {Ready: new(false), Serving: new(true), Terminating: new(true)}, {Serving: new(false), Terminating: new(false)},
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "theirs"}},
			Labels: map[string]string{discoveryv1.LabelServiceName: "web", "theirs": "x"},
		},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: new(int32(80))}},
		Endpoints: make([]discoveryv1.Endpoint, 0, 16),
	}
	want := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "a", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, c := range conditions {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, NodeName: new("n1"), Zone: new("1"), Conditions: c})
		want.Endpoints = append(want.Endpoints, discoveryv1.Endpoint{NodeName: new("n1"), Conditions: c})
	}
	slice.Endpoints[3].NodeName, want.Endpoints[3].NodeName = nil, nil
	stripSlice(slice)
	if diff := cmp.Diff(want, slice); diff != "" {
		t.Error(diff)
	}
	if cap(slice.Endpoints) != len(slice.Endpoints) {
		t.Errorf("room for %d endpoints is kept", cap(slice.Endpoints))
	}
}
