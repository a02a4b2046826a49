// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"weir.dev/weir/api/v1alpha1"
)

// loaded is a cluster whose status store knows the BackendPool.
func loaded(t *testing.T, p *v1alpha1.BackendPool, objects ...client.Object) *Cluster {
	t.Helper()
	c := stored(t, append(objects, p)...)
	c.statuses.Adopt(p)
	return c
}

func nodeAt(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0." + name[1:]}}
	return n
}

// After a lost watch, a slice that was made anew under its name comes as an update.
func TestSliceMadeAnewIsAChange(t *testing.T) {
	node := "n1"
	slice := func(uid types.UID, kind discoveryv1.AddressType) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Name: "web-1", UID: uid},
			AddressType: kind, Endpoints: []discoveryv1.Endpoint{{NodeName: &node}},
		}
	}
	before, after := slice("a", discoveryv1.AddressTypeIPv4), slice("b", discoveryv1.AddressTypeIPv6)
	if !sliceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("another slice of the name passes for the old one")
	}
	if sliceChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: before.DeepCopy()}) {
		t.Error("an update that changes nothing passes for a change")
	}
}

func TestAddressesThatNoLoadBalancerReaches(t *testing.T) {
	n := &corev1.Node{}
	for _, ip := range []string{"127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "fe80::1", "fe80::1%eth0", "::1", "x", "", "10.0.0.4", "fd00::4"} {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	if got := fmt.Sprint(internalIPs(n)); got != "[10.0.0.4 fd00::4]" {
		t.Errorf("got %s", got)
	}
}

// A dry run keeps the members of its pool where they are, whatever becomes of the BackendPool.
func TestADryRunNeedsWhatItHas(t *testing.T) {
	for _, dry := range []string{"", "true"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", Finalizers: []string{ServiceFinalizer},
			Annotations: map[string]string{PlaceAnnotation: "lb", DryRunAnnotation: dry},
		}}
		s.Spec.Type = corev1.ServiceTypeClusterIP // it was a Local one with a load balancer
		p := bp("a", 0, took, func(p *v1alpha1.BackendPool) {
			p.Namespace, p.Status.MadeFor = "ns", "uid"
			p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: "web"}
		})
		c := loaded(t, p, s)
		if got := c.needed(p); got != (dry != "") {
			t.Errorf("dry run %q: needed %v", dry, got)
		}
	}
}
