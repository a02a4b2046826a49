// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/dryrun"
	"weir.dev/weir/internal/offline"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/objects"
)

// newHoldingCluster is a cluster with these BackendPools and the served Service shop/web on load balancers kubernetes
// and kubernetes-internal.
func newHoldingCluster(t *testing.T, pools ...*v1alpha1.BackendPool) *controllers.Controllers {
	t.Helper()
	web := objects.NewService(corev1.ServiceTypeLoadBalancer)
	web.UID, web.Finalizers, web.Spec.ExternalTrafficPolicy = objects.WebUID, []string{metadata.ServiceFinalizer}, corev1.ServiceExternalTrafficPolicyLocal
	have := offline.Objects{Services: []corev1.Service{*web}, Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}}
	for _, p := range pools {
		have.Pools = append(have.Pools, *p)
	}
	settings := service.Settings{ClusterName: "kubernetes", SeveralLoadBalancers: true}
	c := offline.New(controllers.Options{SubscriptionID: "s0", ResourceGroup: "rg0"})
	c.Controllers.EnableLoadBalancers(dryrun.New(loadbalancer.Config{Settings: loadbalancer.Settings{
		Settings: settings, Place: lb.LoadBalancerID{SubscriptionID: "s0", ResourceGroup: "rg0"}, Configurations: []service.Configuration{{Name: "kubernetes"}},
	}}, nil), services.Options{Namespace: "weir-system", Settings: settings})
	if err := c.AddObjects(have); err != nil {
		t.Fatal(err)
	}
	return c.Controllers
}

// A Service deleted while no process was watching is identified by the record in its BackendPool's status,
// not by owner references, which any user may write, and only if it does not exist.
func TestTheRecordOfAServiceThatIsGoneNamesIt(t *testing.T) {
	lost := func(edits ...func(*v1alpha1.BackendPool)) *v1alpha1.BackendPool {
		return objects.ManagedPool(append([]func(*v1alpha1.BackendPool){objects.WithDeletion, objects.WithName("lost.kubernetes"), objects.OfService("lost"), objects.OfPool("shop-lost")}, edits...)...)
	}
	labelled := func(p *v1alpha1.BackendPool) { p.Labels = map[string]string{metadata.ManagedBy: k8s.FieldOwner} }
	for _, tt := range []struct {
		name   string
		pool   *v1alpha1.BackendPool
		leaves bool
	}{
		{"recorded", lost(objects.RecordedAs(objects.DeletedUID), objects.OwnedBy(objects.DeletedUID)), true},
		{"recorded, its owner edited", lost(objects.RecordedAs(objects.DeletedUID), objects.OwnedBy("x")), true},
		{"owned by a Service that never was, and labelled", lost(objects.OwnedBy(objects.DeletedUID), labelled), false},
		{"owned by one of another name", lost(objects.OwnedBy(objects.WebUID)), false},
		{"recorded for one that is there, and edited", lost(objects.RecordedAs(objects.WebUID), objects.WithName("web.kubernetes")), false},
		{"recorded, on a load balancer of another owner", lost(objects.RecordedAs(objects.DeletedUID), objects.OnLoadBalancer("kubernetes", "other")), false},
		{"recorded, and another has its name now", objects.ManagedPool(objects.WithDeletion, objects.RecordedAs(objects.DeletedUID)), false},
		{"recorded, of nodes", objects.ManagedNodePool(objects.WithDeletion, objects.RecordedAs(v1alpha1.MadeForNodes)), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newHoldingCluster(t, tt.pool).Services
			r.HandleDeletion(tt.pool)
			name := tt.pool.Namespace + "/lost"
			if uid, known := r.KnownUID(name); known != tt.leaves || known && uid != objects.DeletedUID {
				t.Errorf("%s leaves its load balancer: %v, want %v", name, known, tt.leaves)
			}
		})
	}
}
