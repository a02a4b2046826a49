// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/lb"
)

// The load balancer was deleted with its pools and is recreated. Azure's treatment of addresses in
// new pools is unknown, so none are sent; each pool is filled at once by its own recorded write.
func TestPoolsThatComeBackAreFilledAtOnce(t *testing.T) {
	inDriftingWorld(t, 3, 100*period, func(w *world) {
		w.inSync(web)
		w.inSync(api)
		w.set(func() { w.pools, w.ledger["web"] = map[lb.PoolKey]*lb.Pool{}, nil })
		unlock := w.hold()
		next, settle := w.lanes.StagePools(web.LoadBalancer, w.whole(web, api))
		expectCarried(t, next, "web ", "api ")
		shown, _ := w.putWhole(next)
		settle(shown, false)
		unlock()
		w.wait(time.Minute)
		w.expectCalls("+22s PUT balancer web: api:",
			"+22s GET api", "+22s PUT api n1=10.0.0.1",
			"+24s GET web", "+24s RECORD web [10.0.0.1]", "+24s PUT web n1=10.0.0.1")
		w.expectReports("api Written Updated:api", "web Written Updated:web")
	})
}

// The load balancer write repeats what was read: waiting operations stay, and nothing is recorded for them.
func TestALoadBalancerWriteCarriesNothingOfPools(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.pool(web, "vm=10.9.9.9")
		unlock := w.hold()
		w.change(web, "n1=10.0.0.1")
		before := w.standing(web)
		next, settle := w.lanes.StagePools(web.LoadBalancer, w.whole(web))
		expectCarried(t, next, "web vm=10.9.9.9")
		shown, _ := w.putWhole(next)
		settle(shown, false)
		if diff := cmp.Diff(before, w.standing(web), everything); diff != "" {
			t.Errorf("-before +after\n%s", diff)
		}
		unlock()
		w.wait(time.Minute)
		w.expectCalls("+2s PUT balancer web:vm=10.9.9.9",
			"+2s GET web", "+2s RECORD web [10.0.0.1]", "+2s PUT web vm=10.9.9.9 n1=10.0.0.1")
		w.expectReports("web Written Updated:web")
	})
}

// A pool without a BackendPool is not filled, because it has no record.
func TestAPoolWithoutABackendPoolIsLeftEmpty(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.inSync(api) // so that a worker exists
		planned := lb.Pool{ID: web, Addresses: addresses("n1=10.0.0.1")}
		unlock := w.hold()
		next, settle := w.lanes.StagePools(web.LoadBalancer, []lb.Pool{planned})
		expectCarried(t, next, "web ")
		shown, _ := w.putWhole(next)
		settle(shown, false)
		unlock()
		w.wait(time.Minute)
		w.expectCalls("+12s PUT balancer web:")
	})
}
