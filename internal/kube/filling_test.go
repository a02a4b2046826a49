// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// A pool is waited for only where it will be filled.
func TestWhichPoolsAreWaitedFor(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	paused := func(p *v1alpha1.BackendPool) { p.Spec.Paused = true }
	all := service.Pool{Name: "kubernetes", Family: lb.IPv4, Shared: true}
	for _, row := range []struct {
		name    string
		service string
		pool    service.Pool
		nodes   bool
		holder  *v1alpha1.BackendPool
		want    bool
	}{
		{"that of all nodes", "shop/web", all, true, nil, true},
		{"one that has its BackendPool", "shop/web", all, true, nodesPool(recordedAs(v1alpha1.MadeForNodes)), true},
		{"one that stays as it is", "shop/web", all, true, nodesPool(recordedAs(v1alpha1.MadeForNodes), paused), false},
		{"there are no nodes", "shop/web", all, false, nil, false},
		{"of another family", "shop/web", service.Pool{Name: "kubernetes-IPv6", Family: lb.IPv6, Shared: true}, true, nil, false},
		{"without endpoints", "shop/web", service.Pool{Name: "shop-web", Family: lb.IPv4}, true, nil, false},
		{"of a Service that is gone", "shop/gone", all, true, nil, false},
	} {
		var pools []*v1alpha1.BackendPool
		if row.holder != nil {
			pools = append(pools, row.holder)
		}
		o := proving(t, pools...)
		if row.nodes {
			if err := o.snap.Nodes.Add(node); err != nil {
				t.Fatal(err)
			}
		}
		if got := o.services.Awaits(row.service, o.own.Balancers.ID("kubernetes"), row.pool); got != row.want {
			t.Errorf("%s: waited for: %t, want %t", row.name, got, row.want)
		}
	}
}
