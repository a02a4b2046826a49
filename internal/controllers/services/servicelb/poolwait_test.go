// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// A Service that waits for its pools is requested again when one is filled, when the spec changes, or after a
// while, but not on every event.
func TestRequestAfterPoolFill(t *testing.T) {
	now, wish := time.Now(), &service.Spec{Owner: "a1"}
	waiting := func() *PoolWait {
		f := &PoolWait{}
		f.startWait(waitFill, loadbalancer.Result{Request: loadbalancer.Request{Desired: wish}, FillingPools: []lb.PoolID{{Name: "shop-web"}}}, now)
		return f
	}
	filled := waiting()
	filled.recordChange(true)
	for _, row := range []struct {
		name   string
		f      *PoolWait
		wish   *service.Spec
		second string
		now    time.Time
		over   bool
	}{
		{"an event", waiting(), &service.Spec{Owner: "a1"}, "", now.Add(time.Second), false},
		{"a pool is filled", filled, wish, "", now, true},
		{"it wants something else", waiting(), &service.Spec{Owner: "a1", Internal: true}, "", now, true},
		{"it wants nothing any more", waiting(), nil, "", now, true},
		{"a person asks", waiting(), wish, "please", now, true},
		{"nobody has said anything", waiting(), wish, "", now.Add(poolRetryInterval), true},
	} {
		if over := !row.f.mustWait(row.wish, row.second, row.now); over != row.over {
			t.Errorf("%s: over %t, want %t: %+v", row.name, over, row.over, row.f.request)
		}
	}
}

// A Service does not wait for a pool without BackendPool: a new request creates it.
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
		var st State
		st.PoolWait.startWait(waitFill, loadbalancer.Result{FillingPools: []lb.PoolID{web}}, time.Now())
		st.recordLostPool(LostPool{LoadBalancer: row.balancer, Pool: row.pool})
		if waits := st.PoolWait.mustWait(nil, "", time.Now()) && st.PoolWait.fills != nil; waits != row.waits {
			t.Errorf("%s is lost: waits %t, want %t", row.name, waits, row.waits)
		}
	}
}
