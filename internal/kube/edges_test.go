// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
)

// loaded is a cluster whose status store knows the BackendPool.
func loaded(t *testing.T, p *v1alpha1.BackendPool, objects ...client.Object) *Cluster {
	t.Helper()
	c := stored(t, append(objects, p)...)
	c.own.Statuses.Adopt(p)
	return c
}

func nodeAt(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0." + name[1:]}}
	return n
}

// A dry run keeps the members of its pool where they are, whatever becomes of the BackendPool.
func TestADryRunNeedsWhatItHas(t *testing.T) {
	for _, dry := range []string{"", "true"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", Finalizers: []string{view.ServiceFinalizer},
			Annotations: map[string]string{view.PlaceAnnotation: "lb", view.DryRunAnnotation: dry},
		}}
		s.Spec.Type = corev1.ServiceTypeClusterIP // it was a Local one with a load balancer
		p := bp("web.lb", 0, took, func(p *v1alpha1.BackendPool) {
			p.Namespace, p.Status.MadeFor = "ns", "uid"
			p.Spec.ServiceRef = &v1alpha1.ServiceReference{Name: "web"}
		})
		c := loaded(t, p, s)
		c.own.Balancers = oneBalancer{}
		if got := c.own.Needed(p); got != (dry != "") {
			t.Errorf("dry run %q: needed %v", dry, got)
		}
	}
}

// oneBalancer is the load balancer lb.
type oneBalancer struct{}

func (oneBalancer) Names() []string { return []string{"lb"} }
func (oneBalancer) ID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0", Name: name}
}
