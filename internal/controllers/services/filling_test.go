// SPDX-License-Identifier: Apache-2.0

package services_test

import (
	"testing"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/services"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/test/objects"
)

// Awaits is true only for pools that will be filled.
func TestAwaitedPools(t *testing.T) {
	paused := func(p *v1alpha1.BackendPool) { p.Spec.Paused = true }
	shared := service.Pool{Name: "kubernetes", Family: lb.IPv4, Shared: true}
	for _, row := range []struct {
		name    string
		service string
		pool    service.Pool
		nodes   bool
		holder  *v1alpha1.BackendPool
		want    bool
	}{
		{"that of all nodes", "shop/web", shared, true, nil, true},
		{"one that has its BackendPool", "shop/web", shared, true, objects.ManagedNodePool(objects.RecordedAs(v1alpha1.MadeForNodes)), true},
		{"one that stays as it is, and is empty", "shop/web", shared, true, objects.ManagedNodePool(objects.RecordedAs(v1alpha1.MadeForNodes), paused), true},
		{"there are no nodes", "shop/web", shared, false, nil, false},
		{"of another family", "shop/web", service.Pool{Name: "kubernetes-IPv6", Family: lb.IPv6, Shared: true}, true, nil, false},
		{"without endpoints", "shop/web", service.Pool{Name: "shop-web", Family: lb.IPv4}, true, nil, false},
		{"of a Service that is gone", "shop/gone", shared, true, nil, false},
	} {
		var pools []*v1alpha1.BackendPool
		if row.holder != nil {
			pools = append(pools, row.holder)
		}
		r := newHoldingCluster(t, pools...)
		if row.nodes {
			if err := r.View.Add(objects.NewNode(1)); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.Services.NeedsMembers(row.service, r.Ownership.LoadBalancers.ID("kubernetes"), row.pool, lb.Pool{}); got != row.want {
			t.Errorf("%s: waited for: %t, want %t", row.name, got, row.want)
		}
	}
}

// The status in memory shows whether a pool is empty: the cache does not keep the counts.
func TestEmptyPool(t *testing.T) {
	pool := service.Pool{Name: "kubernetes", Family: lb.IPv4, Shared: true}
	for observed, want := range map[int32]string{0: "kubernetes", 2: ""} {
		p := objects.ManagedNodePool(objects.RecordedAs(v1alpha1.MadeForNodes))
		r := newHoldingCluster(t, p)
		written := p.DeepCopy()
		written.Status.Desired, written.Status.Observed = new(int32(2)), new(observed)
		r.Ownership.Statuses.AdoptPool(written)
		if got := services.EmptyPool(r.Services, r.Ownership.LoadBalancers.ID("kubernetes"), []service.Pool{pool}); got != want {
			t.Errorf("%d observed: %q is empty", observed, got)
		}
	}
}
