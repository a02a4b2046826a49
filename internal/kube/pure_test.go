// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"log/slog"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/events"
	"weir.dev/weir/internal/kube/services"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolschedule"
)

// stored is a snapshot of these objects. Pools count as taken, and as made by Weir, by their
// status, and every namespace may bind every pool.
func stored(t *testing.T, objects ...client.Object) *Cluster {
	t.Helper()
	s := &view.Snapshot{Placement: view.Placement{SubscriptionID: "s0", ResourceGroup: "rg0"}}
	s.InMemory()
	if err := s.Add(objects...); err != nil {
		t.Fatal(err)
	}
	c := &Cluster{snap: s, opts: Options{Log: slog.New(slog.DiscardHandler)}, events: events.New(view.Scheme(), nil, slog.Default())}
	c.connect(noAPI{}, services.API{})
	c.connectPools(byStatus{poolOwner{c.own, c.services}})
	return c
}

// byStatus says by their status alone which BackendPools Weir made.
type byStatus struct{ poolOwner }

func (byStatus) Made(p *v1alpha1.BackendPool) bool { return p.Status.MadeFor != "" }

func (o byStatus) MadeFor(p *v1alpha1.BackendPool) string {
	if o.Made(p) && p.Spec.ServiceRef == nil {
		return v1alpha1.MadeForNodes
	}
	return ""
}

func (o byStatus) Right(p *v1alpha1.BackendPool, _ lb.PoolID) (backendpool.Right, backendpool.Refusal) {
	if o.Made(p) {
		return backendpool.Own, backendpool.Refusal{}
	}
	return backendpool.Granted, backendpool.Refusal{}
}

// noAPI is an API server that takes every status, and reads none.
type noAPI struct{ backendpool.API }

func (noAPI) Apply(_ context.Context, _ poolschedule.Ref, version string, _ *v1alpha1.BackendPoolStatus) (string, error) {
	return version, nil
}

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
