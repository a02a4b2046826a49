// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// A Service whose pools have to be filled first is not asked for again by every event; it is when
// one is filled, when what it wants is another thing, and after a while.
func TestWhenAServiceIsAskedForAgainWhosePoolsAreFilledFirst(t *testing.T) {
	now, wish := time.Now(), &service.Spec{Owner: "a1"}
	waiting := func() *filling {
		f := &filling{asked: &balancer.Request{Desired: wish}, until: now.Add(fillsAgainAfter)}
		f.pools.Store(&[]lb.PoolID{{Name: "shop-web"}})
		return f
	}
	filled := waiting()
	filled.one.Store(true)
	for _, row := range []struct {
		name  string
		f     *filling
		wish  *service.Spec
		again string
		now   time.Time
		over  bool
	}{
		{"an event", waiting(), &service.Spec{Owner: "a1"}, "", now.Add(time.Second), false},
		{"a pool is filled", filled, wish, "", now, true},
		{"it wants something else", waiting(), &service.Spec{Owner: "a1", Internal: true}, "", now, true},
		{"it wants nothing any more", waiting(), nil, "", now, true},
		{"a person asks", waiting(), wish, "please", now, true},
		{"nobody has said anything", waiting(), wish, "", now.Add(fillsAgainAfter), true},
	} {
		if over := row.f.over(row.wish, row.again, row.now); over != row.over || (row.f.asked == nil) != row.over || (row.f.pools.Load() == nil) != row.over {
			t.Errorf("%s: over %t, want %t: %+v", row.name, over, row.over, row.f.asked)
		}
	}
}

// A Service does not wait for a pool whose BackendPool went meanwhile: it is asked for again, which
// makes it.
func TestAPoolThatIsLostIsNotWaitedFor(t *testing.T) {
	web := lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: "kubernetes"}, Name: "shop-web"}
	for _, row := range []struct {
		name, balancer, pool string
		waits                bool
	}{
		{"its pool", "Kubernetes", "Shop-Web", false},
		{"another pool", "kubernetes", "shop-api", true},
		{"a pool of that name elsewhere", "kubernetes-internal", "shop-web", true},
	} {
		cl := &claim{filling: filling{asked: &balancer.Request{}, until: time.Now().Add(fillsAgainAfter)}}
		cl.filling.pools.Store(&[]lb.PoolID{web})
		cl.loses(nil)
		cl.loses(&v1alpha1.BackendPoolSpec{LoadBalancer: v1alpha1.LoadBalancerReference{Name: row.balancer}, PoolName: row.pool})
		if waits := cl.filling.asked != nil && cl.filling.pools.Load() != nil; waits != row.waits {
			t.Errorf("%s is lost: waits %t, want %t", row.name, waits, row.waits)
		}
	}
}

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
			if err := o.snap.nodes.Add(node); err != nil {
				t.Fatal(err)
			}
		}
		if got := o.Awaits(row.service, o.balancers.ID("kubernetes"), row.pool); got != row.want {
			t.Errorf("%s: waited for: %t, want %t", row.name, got, row.want)
		}
	}
}
