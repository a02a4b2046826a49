// SPDX-License-Identifier: Apache-2.0

package ownership_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/test/objects"
)

// A dry run keeps the members of its pool, even if the BackendPool is deleted.
func TestADryRunNeedsWhatItHas(t *testing.T) {
	for _, dry := range []string{"", "true"} {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web", Finalizers: []string{metadata.ServiceFinalizer},
			Annotations: map[string]string{metadata.PlaceAnnotation: "lb", metadata.DryRunAnnotation: dry},
		}}
		s.Spec.Type = corev1.ServiceTypeClusterIP // it was a Local Service with a load balancer
		p := objects.NewBackendPool("web.lb", 0, objects.WithAzurePool, objects.InNamespace("ns"), objects.RecordedAs("uid"))
		o := newPools(t, p, s)
		o.LoadBalancers = managedLoadBalancers{"lb"}
		if got := o.IsInUse(p); got != (dry != "") {
			t.Errorf("dry run %q: needed %v", dry, got)
		}
	}
}

// With pools of network interfaces, a Local Service has no own pools.
func TestLocalServicesHaveNoPoolsOfInterfaces(t *testing.T) {
	local := func(namespace, name string) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(namespace + name), Finalizers: []string{metadata.ServiceFinalizer},
			Annotations: map[string]string{metadata.PlaceAnnotation: "kubernetes"},
		}}
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
		return s
	}
	for _, interfaces := range []bool{false, true} {
		first, second := local("a", "b-c"), local("a-b", "c")
		remaining := objects.ManagedPool(objects.WithAzurePool, objects.RecordedAs(objects.WebUID))
		foreign := objects.NewBackendPool("theirs", 0, objects.InNamespace("team"), objects.OfPool("a-b-c"), objects.OnLoadBalancer("kubernetes", ""))
		o := newPools(t, remaining, first, second, foreign)
		o.Settings.Interfaces, o.Settings.ConvertsPools = interfaces, interfaces
		web := cache.Get[corev1.Service](o.View.Services, "shop/web").DeepCopy()
		web.Annotations = map[string]string{metadata.PlaceAnnotation: "kubernetes"}
		if err := o.View.Services.Update(web); err != nil {
			t.Fatal(err)
		}
		if names := o.PoolNames(first); (names == nil) != interfaces {
			t.Errorf("interfaces %v: a Service whose pool's name is another's has %v", interfaces, names)
		}
		if needed := o.IsInUse(remaining); needed == interfaces {
			t.Errorf("interfaces %v: its BackendPool is needed: %v", interfaces, needed)
		}
		at, err := o.View.Target(foreign)
		if err != nil {
			t.Fatal(err)
		}
		if permission, not := o.Permission(foreign, at); (permission == backendpool.Granted) != interfaces {
			t.Errorf("interfaces %v: another owner's has right %d, %+v", interfaces, permission, not)
		}
	}
}
