// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
)

// bp is a BackendPool of the Service web, made at minute n.
func bp(name string, minute int, edit ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
	p := &v1alpha1.BackendPool{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, UID: types.UID(name), Finalizers: []string{v1alpha1.Finalizer},
		CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)),
	}, Spec: v1alpha1.BackendPoolSpec{
		ServiceRef: &v1alpha1.ServiceReference{Name: "web"}, IPFamily: "IPv4",
		LoadBalancer: v1alpha1.LoadBalancerReference{Name: "lb"}, PoolName: "web",
	}}
	for _, f := range edit {
		f(p)
	}
	return p
}

func serviceOfType(kind corev1.ServiceType) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "svc"}, Spec: corev1.ServiceSpec{Type: kind}}
}

func took(p *v1alpha1.BackendPool) {
	p.Status.PoolID = "/subscriptions/s0/resourceGroups/rg0/providers/Microsoft.Network/loadBalancers/lb/backendAddressPools/web"
}
func deleting(p *v1alpha1.BackendPool) { p.DeletionTimestamp = new(metav1.Now()) }
func paused(p *v1alpha1.BackendPool)   { p.Spec.Paused = true }

func TestEntitlement(t *testing.T) {
	lbService := serviceOfType(corev1.ServiceTypeLoadBalancer)
	badSelector := func(p *v1alpha1.BackendPool) {
		p.Spec.ServiceRef, p.Spec.Nodes = nil, &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}}
	}
	for _, tt := range []struct {
		name           string
		pool           *v1alpha1.BackendPool
		others         []any
		want           State
		removes, works bool
	}{
		{"its Service is there", bp("a", 0), []any{lbService}, Active, false, true},
		{"NodePort will do", bp("a", 0), []any{serviceOfType(corev1.ServiceTypeNodePort)}, Active, false, true},
		{"paused", bp("a", 0, paused, took), []any{lbService}, Paused, false, false},
		{"no Service, never taken", bp("a", 0), nil, ServiceGone, false, false},
		{"no Service, taken", bp("a", 0, took), nil, ServiceGone, true, true},
		{"unfit Service, taken", bp("a", 0, took), []any{serviceOfType(corev1.ServiceTypeExternalName)}, ServiceGone, true, true},
		{"being deleted, never taken", bp("a", 0, deleting), []any{lbService}, Active, false, false},
		{"being deleted, taken", bp("a", 0, deleting, took), []any{lbService}, Active, true, true},
		{"being deleted while paused", bp("a", 0, deleting, took, paused), []any{lbService}, Paused, false, false},
		{"an older one holds the pool", bp("b", 1), []any{lbService, bp("a", 0)}, Duplicate, false, false},
		{"the older one", bp("b", 0), []any{lbService, bp("a", 1)}, Active, false, true},
		{"as old, later by name", bp("b", 0), []any{lbService, bp("a", 0)}, Duplicate, false, false},
		{"younger, but it took the pool", bp("b", 1, took), []any{lbService, bp("a", 0)}, Active, false, true},
		{"the older one goes and never took it", bp("b", 1), []any{lbService, bp("a", 0, deleting)}, Active, false, true},
		{"the older one goes and has to clear it", bp("b", 1), []any{lbService, bp("a", 0, deleting, took)}, Duplicate, false, false},
		{"a selector that nobody can read", bp("a", 0, badSelector, took), nil, Invalid, false, false},
		{"the same, being deleted", bp("a", 0, badSelector, took, deleting), nil, Active, true, true},
		{"a name that leaves the path", bp("a", 0, func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "../x" }), []any{lbService}, Invalid, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := stored(t, append(tt.others, tt.pool)...)
			st := c.Entitlement(tt.pool)
			if st.State != tt.want || st.Removes() != tt.removes || st.Works() != tt.works {
				t.Errorf("%s (removes %v, works %v, %q), want %s (%v, %v)", st.State, st.Removes(), st.Works(), st.Why, tt.want, tt.removes, tt.works)
			}
		})
	}
}
