// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/test/objects"
)

var (
	bp            = objects.NewBackendPool
	serviceOfType = objects.NewService
	took          = objects.WithAzurePool
	deleting      = objects.WithDeletion
)

func asPaused(p *v1alpha1.BackendPool) { p.Spec.Paused = true }

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
		{"paused", bp("a", 0, asPaused, took), []any{lbService}, Paused, false, false},
		{"no Service, never taken", bp("a", 0), nil, ServiceMissing, false, false},
		{"no Service, taken", bp("a", 0, took), nil, ServiceMissing, true, true},
		{"unfit Service, taken", bp("a", 0, took), []any{serviceOfType(corev1.ServiceTypeExternalName)}, ServiceMissing, true, true},
		{"being deleted, never taken", bp("a", 0, deleting), []any{lbService}, Active, false, false},
		{"being deleted, taken", bp("a", 0, deleting, took), []any{lbService}, Active, true, true},
		{"being deleted while paused", bp("a", 0, deleting, took, asPaused), []any{lbService}, Paused, false, false},
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
			c := newCluster(t, append(tt.others, tt.pool)...)
			st := c.ResolveBinding(tt.pool, time.Now())
			if st.State != tt.want || st.RemovesMembers() != tt.removes || st.AllowsUpdates() != tt.works {
				t.Errorf("%s (removes %v, works %v, %q), want %s (%v, %v)", st.State, st.RemovesMembers(), st.AllowsUpdates(), st.Message, tt.want, tt.removes, tt.works)
			}
		})
	}
}

func TestTermsOfASelectorAreBounded(t *testing.T) {
	values := make([]string, maxSelectorTerms-2)
	for i := range values {
		values[i] = fmt.Sprint("n", i)
	}
	p := &v1alpha1.BackendPool{Spec: v1alpha1.BackendPoolSpec{Nodes: &v1alpha1.NodeMembers{Selector: metav1.LabelSelector{
		MatchLabels:      map[string]string{"zone": "1"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "name", Operator: metav1.LabelSelectorOpIn, Values: values}},
	}}}}
	if _, err := NodeSelector(p); err != nil {
		t.Error(err)
	}
	p.Spec.Nodes.Selector.MatchLabels["pool"] = "a"
	if _, err := NodeSelector(p); err == nil {
		t.Error("a selector beyond the limit is allowed")
	}
}
