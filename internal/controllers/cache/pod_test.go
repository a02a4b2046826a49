// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"weir.dev/weir/internal/k8s/metadata"
)

func gatedPod(conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web-1", UID: "u", ResourceVersion: "7", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}},
		},
		Spec: corev1.PodSpec{
			NodeName: "n1", Containers: []corev1.Container{{Name: "web"}},
			ReadinessGates: []corev1.PodReadinessGate{{ConditionType: "other"}, {ConditionType: metadata.GateInPool}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.244.0.1", Conditions: append(conditions, corev1.PodCondition{Type: corev1.PodReady, Message: "long"})},
	}
}

// The cache keeps what a decision needs, and of a pod with an open gate the identity.
func TestStripPod(t *testing.T) {
	ready := corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}
	closed, open := gatedPod(ready), gatedPod(ready, corev1.PodCondition{Type: metadata.GateInPool, Status: corev1.ConditionTrue, Message: "long"})
	for range 2 { // an informer may strip twice
		stripPod(closed)
		stripPod(open)
	}
	identity := metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "u", ResourceVersion: "7"}
	labeled := identity
	labeled.Labels = map[string]string{"app": "web"}
	if diff := cmp.Diff(&corev1.Pod{
		ObjectMeta: labeled, Spec: corev1.PodSpec{NodeName: "n1", ReadinessGates: gateOnly}, Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{ready}},
	}, closed); diff != "" {
		t.Errorf("closed: %s", diff)
	}
	if diff := cmp.Diff(&corev1.Pod{ObjectMeta: identity, Status: corev1.PodStatus{Conditions: openGate}}, open); diff != "" {
		t.Errorf("open: %s", diff)
	}
	if !HasGate(closed) || HasOpenGate(closed) || !HasOpenGate(open) || unsafe.SliceData(open.Status.Conditions) != unsafe.SliceData(openGate) {
		t.Error("the gate is lost, or not shared")
	}
}

// Selectors are kept of Services that can have pools, and only with readiness gates.
func TestKeepSelectors(t *testing.T) {
	for kind, kept := range map[corev1.ServiceType]bool{corev1.ServiceTypeLoadBalancer: true, corev1.ServiceTypeNodePort: true, corev1.ServiceTypeClusterIP: false} {
		for _, with := range []bool{true, false} {
			options := Options(nil)
			if with {
				options = KeepSelectors(options)
			}
			s := &corev1.Service{Spec: corev1.ServiceSpec{Type: kind, Selector: map[string]string{"app": "web"}}}
			for object, by := range options.ByObject {
				if _, ok := object.(*corev1.Service); ok {
					for range 2 {
						if _, err := by.Transform(s); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if got := len(s.Spec.Selector) > 0; got != (kept && with) {
				t.Errorf("%s, with gates %t: kept %t", kind, with, got)
			}
		}
	}
}

// A pod is selected by Services of its own namespace only.
func TestServicesSelecting(t *testing.T) {
	v := &Snapshot{}
	v.InMemory()
	add := func(namespace, name string, selector map[string]string) {
		t.Helper()
		if err := v.Add(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Selector: selector}}); err != nil {
			t.Fatal(err)
		}
	}
	add("shop", "web", map[string]string{"app": "web"})
	add("shop", "both", map[string]string{"app": "web", "tier": "front"})
	add("shop", "without", nil)
	add("other", "web", map[string]string{"app": "web"})
	got := v.ServicesSelecting("shop", labels.Set{"app": "web", "tier": "back"})
	if len(got) != 1 || got[0].Namespace != "shop" || got[0].Name != "web" {
		t.Errorf("selected by %v", got)
	}
}
