// SPDX-License-Identifier: Apache-2.0

package backendpools

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

// newLargeCluster has a BackendPool and ten endpoints per Service, on 1,000 nodes, in sync.
func newLargeCluster(tb testing.TB, services int) *Reconciler {
	tb.Helper()
	s := &cache.Snapshot{Placement: cache.Placement{SubscriptionID: "s0", ResourceGroup: "rg0"}}
	s.InMemory()
	var objects []client.Object
	for i := range 1000 {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String()},
			}},
		})
	}
	var pools []*v1alpha1.BackendPool
	for i := range services {
		p := bp(fmt.Sprint("s", i), 0, func(p *v1alpha1.BackendPool) {
			p.Spec.ServiceRef.Name, p.Spec.PoolName, p.Spec.LoadBalancer.Name = p.Name, p.Name, fmt.Sprint("lb", i%50)
			p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonInSync}}
		})
		pools = append(pools, p)
		objects = append(objects, p, slice(i, 0), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: p.Name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer},
		})
	}
	if err := s.Add(objects...); err != nil {
		tb.Fatal(err)
	}
	r := New(Config{View: s, Statuses: backendpool.NewStatuses(nil), Owner: allowAll{}, Log: slog.New(slog.DiscardHandler)})
	r.Workers = &operationCounter{}
	for _, p := range pools {
		r.Statuses.AdoptPool(p)
	}
	return r
}

func slice(i, moved int) *discoveryv1.EndpointSlice {
	es := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: fmt.Sprint("s", i), Generation: int64(moved),
			Labels: map[string]string{discoveryv1.LabelServiceName: fmt.Sprint("s", i)},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for e := range 10 {
		node := i*7 + e*100
		if e == 0 {
			node += moved
		}
		es.Endpoints = append(es.Endpoints, discoveryv1.Endpoint{NodeName: new(fmt.Sprint("n", node%1000)), Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return es
}

// allowAll allows every binding and owns no pool.
type allowAll struct{ backendpool.Owner }

func (allowAll) Permission(*v1alpha1.BackendPool, lb.PoolID) (backendpool.Permission, backendpool.Rejection) {
	return backendpool.Granted, backendpool.Rejection{}
}
func (allowAll) IsCreatedByWeir(*v1alpha1.BackendPool) bool { return false }

type operationCounter struct {
	backendpool.Workers
	added int
}

func (o *operationCounter) Add(ops ...schedule.Operation)   { o.added += len(ops) }
func (o *operationCounter) IsInSync(lb.PoolID, uint64) bool { return false }

var _ backendpool.Workers = (*updater.Workers)(nil)

// An event that changes no member of a pool in sync costs almost nothing and queues nothing.
func TestAnEventWithoutAMemberCostsNextToNothing(t *testing.T) {
	for _, services := range []int{100, 1000} {
		r := newLargeCluster(t, services)
		check, before, after := r.sliceChanged().Update, slice(7, 0), slice(7, 0)
		after.Generation++
		if check(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			t.Fatal("it passes")
		}
		if n := testing.AllocsPerRun(100, func() { check(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) }); n > 5 {
			t.Errorf("%d Services: %.0f allocations", services, n)
		}
		if !check(event.UpdateEvent{ObjectOld: before, ObjectNew: slice(7, 1)}) {
			t.Error("a member moves, and nobody hears of it")
		}
		order := slice(7, 0)
		order.Endpoints[0], order.Endpoints[1] = order.Endpoints[1], order.Endpoints[0]
		order.Endpoints[0].Conditions.Ready = new(false)
		if !check(event.UpdateEvent{ObjectOld: before, ObjectNew: order}) {
			t.Error("an endpoint is not ready any more, and nobody hears of it")
		}
	}
}

// The cost of an event that moves a member does not depend on the number of pools.
func TestAnEventThatMovesAMemberCostsTheSameInALargeCluster(t *testing.T) {
	cost := func(services int) float64 {
		r := newLargeCluster(t, services)
		name := schedule.ServiceName{Namespace: "shop", Name: "s7"}
		return testing.AllocsPerRun(50, func() {
			if err := r.EndpointsChanged(context.Background(), name, time.Now()); err != nil {
				t.Fatal(err)
			}
		})
	}
	small, large := cost(100), cost(2000)
	if large > 1.1*small+2 {
		t.Errorf("%.0f allocations among 100 pools, %.0f among 2,000", small, large)
	}
}

func BenchmarkEventWithoutMember(b *testing.B) {
	for _, services := range []int{1000, 10000} {
		b.Run(fmt.Sprint(services), func(b *testing.B) {
			r := newLargeCluster(b, services)
			before, after := slice(7, 0), slice(7, 0)
			after.Generation++
			check := r.sliceChanged().Update
			b.ReportAllocs()
			for b.Loop() {
				if check(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
					b.Fatal("it passes")
				}
			}
		})
	}
}

func BenchmarkEventThatMovesAMember(b *testing.B) {
	for _, services := range []int{1000, 10000} {
		b.Run(fmt.Sprint(services), func(b *testing.B) {
			r := newLargeCluster(b, services)
			name := schedule.ServiceName{Namespace: "shop", Name: "s7"}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := r.view.Slices.Update(slice(7, i%50)); err != nil {
					b.Fatal(err)
				}
				if err := r.EndpointsChanged(b.Context(), name, time.Now()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
