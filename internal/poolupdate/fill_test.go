// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
)

// The load balancer was deleted with its pools and is recreated. Azure's treatment of addresses in
// new pools is unknown, so none are sent; each pool is filled at once by its own recorded write.
func TestPoolsThatComeBackAreFilledAtOnce(t *testing.T) {
	inDriftingWorld(t, 3, 100*period, func(w *world) {
		w.level(web)
		w.level(api)
		w.set(func() { w.pools, w.ledger["web"] = map[lb.PoolKey]*lb.Pool{}, nil })
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web, api))
		expectCarried(t, c, "web ", "api ")
		shown, _ := w.putWhole(c.pools)
		c.applyResult(w.t.Context(), shown)
		unlock()
		w.wait(time.Minute)
		w.expectCalls("+22s PUT balancer web: api:",
			"+22s GET api", "+22s PUT api n1=10.0.0.1",
			"+24s GET web", "+24s RECORD web [10.0.0.1]", "+24s PUT web n1=10.0.0.1")
		w.expectReports("api Written Updated:api", "web Written Updated:web")
	})
}

// Unknown behavior is not relied on: waiting operations stay, nothing is recorded for them, and the
// load balancer write repeats what was read.
func TestNothingIsCarriedIntoTheUnknown(t *testing.T) {
	for name, known := range map[string]behaviour.Behavior{
		"nothing is known":             {},
		"they are ignored":             {UpdateAddresses: behaviour.Ignored, UpdateAdminStates: behaviour.Ignored},
		"but admin states are ignored": {UpdateAddresses: behaviour.Accepted, UpdateAdminStates: behaviour.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			inWorldOf(t, Config{MaxRetries: 3, Behaviour: known}, func(w *world) {
				w.pool(web, "vm=10.9.9.9")
				unlock := w.hold()
				w.change(web, "n1=10.0.0.1")
				before := w.standing(web)
				c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, w.whole(web))
				expectCarried(t, c, "web vm=10.9.9.9")
				shown, _ := w.putWhole(c.pools)
				c.applyResult(w.t.Context(), shown)
				if diff := cmp.Diff(before, w.standing(web), everything); diff != "" {
					t.Errorf("-before +after\n%s", diff)
				}
				unlock()
				w.wait(time.Minute)
				w.expectCalls("+2s PUT balancer web:vm=10.9.9.9",
					"+2s GET web", "+2s RECORD web [10.0.0.1]", "+2s PUT web vm=10.9.9.9 n1=10.0.0.1")
				w.expectReports("web Written Updated:web")
			})
		})
	}
}

// A pool without a BackendPool is not filled, because it has no record.
func TestAPoolWithoutABackendPoolIsLeftEmpty(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.level(api) // so that a worker exists
		planned := lb.Pool{ID: web, Addresses: addresses("n1=10.0.0.1")}
		unlock := w.hold()
		c := w.lanes.stagePools(w.t.Context(), web.LoadBalancer, []lb.Pool{planned})
		expectCarried(t, c, "web ")
		shown, _ := w.putWhole(c.pools)
		c.applyResult(w.t.Context(), shown)
		unlock()
		w.wait(time.Minute)
		w.expectCalls("+12s PUT balancer web:")
	})
}
