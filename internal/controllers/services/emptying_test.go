// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/test/objects"
)

// The last Service leaves a load balancer with network interfaces in its pool: the BackendPool of nodes is
// deleted, and the Service remains until the load balancer can be deleted. Another Service keeps the pool.
func TestTheBackendPoolOfNodesGoesBeforeItsLoadBalancer(t *testing.T) {
	inRG := func(p *v1alpha1.BackendPool) {
		p.Status.PoolID = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/kubernetes"
	}
	home := func(p *v1alpha1.BackendPool) {
		objects.InNamespace("default")(p)
		p.Spec.Membership = v1alpha1.MembershipNetworkInterface
	}
	made := objects.RecordedAs(v1alpha1.MadeForNodes)
	for _, tt := range []struct {
		about string
		pool  *v1alpha1.BackendPool
		stays bool // another Service
		want  string
	}{
		{"taken", objects.ManagedNodePool(home, made, inRG), false, "goes"},
		{"another Service needs it", objects.ManagedNodePool(home, made, inRG), true, "stays"},
		{"about to take it", objects.ManagedNodePool(home, made), false, "stays"},
		{"on its way", objects.ManagedNodePool(home, made, inRG, objects.WithDeletion), false, "goes"},
		{"another owner's", objects.ManagedNodePool(home, objects.WithName("mine"), inRG), false, "made"},
		{"none, and another controller has made them members", nil, false, "made"},
	} {
		t.Run(tt.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, 2)
				w.interfaces = true
				w.enableClass(services.Options{})
				pool := lb.PoolID{LoadBalancer: w.ID("kubernetes"), Name: "kubernetes"}
				w.emptying = []plan.DrainingPool{{Pool: pool, Interfaces: 2}}
				if tt.pool != nil {
					if err := w.kube.View.Add(tt.pool); err != nil {
						t.Fatal(err)
					}
					w.kube.Ownership.Statuses.AdoptPool(tt.pool)
				}
				goes := func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.Now()) }
				w.editService(0, goes)
				if !tt.stays {
					w.editService(1, goes)
				}
				w.advanceTime(20 * time.Second)
				p, got := w.kube.View.Pool("default", "nodes.kubernetes"), "none"
				switch {
				case p == nil:
				case p.DeletionTimestamp != nil:
					got = "goes"
				case tt.pool == nil, tt.pool.Name != p.Name:
					got = "made"
				default:
					got = "stays"
				}
				if got != tt.want || p != nil && tt.pool == nil && p.Spec.Membership != v1alpha1.MembershipNetworkInterface {
					t.Errorf("the BackendPool of nodes: %s, want %s: %+v", got, tt.want, p)
				}
				if s := cache.Get[corev1.Service](w.kube.View.Services, "shop/web-0"); len(w.removed) > 0 || s == nil || !cache.HasFinalizer(s) || s.Annotations[metadata.PlaceAnnotation] != "kubernetes" {
					t.Errorf("%v are gone, and of web-0 is left %+v", w.removed, s)
				}
				w.emptying = nil
				w.advanceTime(31 * time.Second)
				if s := cache.Get[corev1.Service](w.kube.View.Services, "shop/web-0"); len(w.removed) == 0 || s != nil && cache.HasFinalizer(s) {
					t.Errorf("when they have left %v are gone, and of web-0 is left %+v", w.removed, s)
				}
			})
		})
	}
}
