// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/controllers"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/offline"
	"weir.dev/weir/internal/service"
)

// town is a cluster without an API server and a fake Azure where each Service has an address. A setting may
// request the removal of all addresses.
type town struct {
	t          *testing.T
	kube       *controllers.Controllers
	all        []*corev1.Service
	removesAll bool
	// rejects is true if Azure rejects removals.
	rejects bool
	// removed are the Services that lost their address; asked counts requests.
	removed  []string
	requests int
	// interfaces is true if pools contain network interfaces. emptying are the pools that must be empty
	// before a Service is removed.
	interfaces bool
	emptying   []plan.DrainingPool
	// converts is true if pools are converted; then remaining Services wait too.
	converts bool
}

func (*town) CheckDeferred(string, *service.Spec, string, bool, time.Time) error { return nil }
func (*town) RecordRejection(string, *service.Spec, string, error)               {}
func (*town) ForgetService(string, string)                                       {}
func (*town) Run(context.Context)                                                {}
func (*town) CheckReadable(context.Context, string) error                        { return nil }
func (*town) CheckLinksReadable(context.Context, string) error                   { return nil }
func (*town) ListOrphans(context.Context) ([]loadbalancer.Orphan, error)         { return nil, nil }
func (*town) CleanUp(context.Context) (loadbalancer.CleanupResult, error) {
	return loadbalancer.CleanupResult{}, nil
}
func (*town) NodeConfigurations(context.Context) (map[string]string, error) { return nil, nil }
func (*town) LeftToOthers(lb.PoolKey) bool                                  { return false }
func (*town) HealthPort(lb.PoolID) (int32, bool)                            { return 0, true }
func (*town) Names() []string                                               { return []string{"kubernetes", "kubernetes-internal"} }
func (*town) ID(name string) lb.LoadBalancerID {
	return lb.LoadBalancerID{SubscriptionID: "s", ResourceGroup: "rg", Name: name}
}
func (*town) FindPlacement(_ context.Context, p loadbalancer.PlacementRequest) (string, []string, error) {
	if p.Desired == nil {
		return "", p.LoadBalancers, nil
	}
	return "kubernetes", nil, nil
}

// EnsureLoadBalancer answers immediately, from another goroutine.
func (t *town) EnsureLoadBalancer(req loadbalancer.Request) {
	r := loadbalancer.Result{Request: req, Addresses: req.StatusAddresses}
	t.requests++
	if req.Desired != nil {
		r.Pools = req.Desired.Pools
	}
	if t.converts && req.Desired != nil {
		r.Pools, r.DrainingPools = []service.Pool{{Name: "kubernetes_addresses", Family: lb.IPv4, Shared: true}}, t.emptying
	}
	switch {
	case t.rejects && !req.ProtectAddresses:
		r.Err = &armerror.Fault{Class: armerror.Terminal, Code: "InternalServerError", Err: errors.New("not now")}
	case req.Desired == nil && t.emptying != nil:
		r.DrainingPools = t.emptying
	case req.Desired == nil:
		t.removed = append(t.removed, req.Service)
	case t.removesAll && req.ProtectAddresses:
		r.Err = &loadbalancer.AddressLossError{Addresses: req.StatusAddresses}
	case t.removesAll:
		t.removed = append(t.removed, req.Service)
	}
	go t.kube.Services.HandleResult(r)
}

// newTown returns a town with n served Services in sync.
func newTown(t *testing.T, n int) *town {
	t.Helper()
	w := &town{t: t}
	o := offline.New(controllers.Options{SubscriptionID: "s", ResourceGroup: "rg"})
	w.kube = o.Controllers
	w.enableClass(services.Options{})
	var objects offline.Objects
	for i := range n {
		objects.Services = append(objects.Services, corev1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "shop", Name: fmt.Sprint("web-", i), UID: types.UID(fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)),
				Finalizers: []string{metadata.ServiceFinalizer}, Annotations: map[string]string{metadata.PlaceAnnotation: "kubernetes"},
			},
			Spec:   corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: new("weir.dev/azure"), Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080, Protocol: "TCP"}}},
			Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: fmt.Sprint("198.18.0.", i+1)}}}},
		})
	}
	if err := o.AddObjects(objects); err != nil {
		t.Fatal(err)
	}
	for i := range objects.Services {
		w.all = append(w.all, &objects.Services[i])
	}
	return w
}

func (t *town) enableClass(o services.Options) {
	o.Class, o.Namespace = "weir.dev/azure", "default"
	o.Settings = service.Settings{ClusterName: "kubernetes", SeveralLoadBalancers: true, VirtualNetwork: "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/net", Subnet: "nodes", Interfaces: t.interfaces, ConvertsPools: t.converts}
	t.kube.EnableLoadBalancers(t, o)
}

// advanceTime advances time and reconciles each Service once a second.
func (t *town) advanceTime(d time.Duration) {
	t.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
		for _, s := range t.all {
			for range 3 { // a request, its result and the follow-up
				req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: s.Namespace, Name: s.Name}}
				if _, err := t.kube.Services.Reconcile(t.t.Context(), req); err != nil {
					t.t.Fatal(err)
				}
				synctest.Wait()
			}
		}
	}
}

func (t *town) stateCounts() string {
	var texts []string
	for state, n := range t.kube.Services.CountStates() {
		if n > 0 {
			texts = append(texts, fmt.Sprint(n, " ", state))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func (t *town) editService(i int, edit func(*corev1.Service)) {
	t.t.Helper()
	svc := cache.Get[corev1.Service](t.kube.View.Services, metadata.Key(t.all[i].Namespace, t.all[i].Name)).DeepCopy()
	edit(svc)
	if err := t.kube.View.Services.Update(svc); err != nil {
		t.t.Fatal(err)
	}
}

// The API server lists no Services, because it was recreated or belongs to another cluster: the served
// Services were not deleted, and keep their resources.
func TestAListThatIsEmptyTakesNothingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 10)
		w.advanceTime(10 * time.Second)
		if w.stateCounts() != "10 ready" || w.requests != 10 {
			t.Fatalf("at first: %s, after %d requests", w.stateCounts(), w.requests)
		}
		kept := w.kube.View.Services.List()
		if err := w.kube.View.Services.Replace(nil, ""); err != nil {
			t.Fatal(err)
		}
		w.advanceTime(10 * time.Minute)
		if w.stateCounts() != "10 blocked" || len(w.removed) > 0 {
			t.Errorf("while the list is empty: %s, and %v were removed", w.stateCounts(), w.removed)
		}
		if err := w.kube.View.Services.Replace(kept, ""); err != nil {
			t.Fatal(err)
		}
		w.advanceTime(time.Minute)
		if w.stateCounts() != "10 ready" || len(w.removed) > 0 {
			t.Errorf("when they are back: %s, and %v were removed", w.stateCounts(), w.removed)
		}
	})
}

// A Service deleted without an event is cleaned up.
func TestServiceDeletedSilentlyIsCleanedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 10)
		w.advanceTime(10 * time.Second)
		if err := w.kube.View.Services.Delete(w.all[3]); err != nil {
			t.Fatal(err)
		}
		w.advanceTime(4 * time.Second)
		if len(w.removed) > 0 {
			t.Errorf("at once: %v were removed", w.removed)
		}
		w.advanceTime(10 * time.Second)
		if w.stateCounts() != "9 ready" || len(w.removed) != 1 {
			t.Errorf("then: %s, and %v were removed", w.stateCounts(), w.removed)
		}
	})
}

// After a start, a new setting requests the removal of all addresses. One Service is annotated, one deleted,
// one becomes ClusterIP: only those are removed.
func TestSettingReleasesNoAddressBeforeConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 10)
		w.removesAll = true
		w.advanceTime(3 * time.Minute)
		if w.stateCounts() != "10 blocked" || len(w.removed) > 0 {
			t.Fatalf("after the start: %s, and %v were removed", w.stateCounts(), w.removed)
		}
		if w.requests > 10*5 {
			t.Errorf("%d requests in three minutes", w.requests)
		}
		w.editService(1, func(s *corev1.Service) { s.Annotations[cache.AllowRemovalAnnotation] = "true" })
		w.editService(2, func(s *corev1.Service) { s.DeletionTimestamp = new(metav1.Now()) })
		w.editService(3, func(s *corev1.Service) {
			s.Spec.Type, s.Status = corev1.ServiceTypeClusterIP, corev1.ServiceStatus{}
		})
		w.editService(4, func(s *corev1.Service) { s.Annotations[cache.AllowRemovalAnnotation] = "false" })
		w.advanceTime(3 * time.Minute)
		slices.Sort(w.removed)
		if got := strings.Join(slices.Compact(w.removed), " "); !strings.Contains(w.stateCounts(), "7 blocked") || got != "shop/web-1 shop/web-2 shop/web-3" {
			t.Errorf("then: %s, and %s were removed", w.stateCounts(), got)
		}
		w.removesAll = false // the setting is reverted
		w.advanceTime(3 * time.Minute)
		if !strings.Contains(w.stateCounts(), "8 ready") {
			t.Errorf("set back: %s", w.stateCounts())
		}
	})
}

// The controller flag allows all removals.
func TestTheFlagAllowsAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 10)
		w.removesAll = true
		w.enableClass(services.Options{AllowRemoval: true})
		w.advanceTime(3 * time.Second)
		if w.stateCounts() != "10 ready" || len(w.removed) != 10 {
			t.Errorf("%s, and %v were removed", w.stateCounts(), w.removed)
		}
	})
}

// A script adds and removes an annotation that requests the removal of all addresses.
func TestScriptThatRevertsItsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 10)
		w.advanceTime(10 * time.Second)
		w.removesAll = true
		internal := func(s *corev1.Service) { s.Annotations[service.Internal] = "true" }
		for i := range w.all {
			w.editService(i, internal)
		}
		w.advanceTime(3 * time.Minute)
		if w.stateCounts() != "10 blocked" || len(w.removed) > 0 {
			t.Errorf("with the annotation: %s, and %v were removed", w.stateCounts(), w.removed)
		}
		for i := range w.all {
			w.editService(i, func(s *corev1.Service) { delete(s.Annotations, service.Internal) })
		}
		w.removesAll = false
		w.advanceTime(2 * time.Second)
		if w.stateCounts() != "10 ready" || len(w.removed) > 0 {
			t.Errorf("without it: %s, and %v were removed", w.stateCounts(), w.removed)
		}
	})
}

// A removal that Azure rejects is retried with a delay.
func TestARemovalThatFailsWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t, 1)
		w.removesAll, w.rejects = true, true
		req := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: "web-0"}}
		for i, requested := range []int{1, 2, 2} { // blocked; allowed; rejected
			r, err := w.kube.Services.Reconcile(t.Context(), req)
			synctest.Wait()
			if err != nil || w.requests != requested || (r.RequeueAfter > 0) != (i == 2) {
				t.Errorf("after %d: %d requests, want %d; %v, %v", i, w.requests, requested, r, err)
			}
		}
	})
}
