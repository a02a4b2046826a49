// SPDX-License-Identifier: Apache-2.0

package poolupdate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weir.dev/weir/internal/behaviour"
	"weir.dev/weir/internal/lb"
)

// The load balancer went with its pools, and is made again. Nothing is known of what Azure does
// with the addresses of new pools, so none are sent; each pool is filled at once, on record
// first, by one write.
func TestPoolsThatComeBackAreFilledAtOnce(t *testing.T) {
	inDriftingWorld(t, 3, 100*period, func(w *world) {
		w.level(web)
		w.level(api)
		w.set(func() { w.pools, w.ledger["web"] = map[lb.PoolKey]*lb.Pool{}, nil })
		unlock := w.hold()
		c := w.lanes.carry(w.t.Context(), web.LoadBalancer, w.whole(web, api))
		expectCarried(t, c, "web ", "api ")
		shown, _ := w.putWhole(c.pools)
		c.settle(w.t.Context(), shown)
		unlock()
		w.wait(time.Minute)
		w.expectCalls("+22s PUT balancer web: api:",
			"+22s GET api", "+22s PUT api n1=10.0.0.1",
			"+24s GET web", "+24s RECORD web [10.0.0.1]", "+24s PUT web n1=10.0.0.1")
		w.expectReports("api Written Updated:api", "web Written Updated:web")
	})
}

// What is not known is not counted on: what waits stays where it stands, nothing is put on
// record for it, and the load balancer's write repeats what was read.
func TestNothingIsCarriedIntoTheUnknown(t *testing.T) {
	for name, known := range map[string]behaviour.Behaviour{
		"nothing is known":             {},
		"they are ignored":             {WholeWriteAddresses: behaviour.Ignored, WholeWriteAdminStates: behaviour.Ignored},
		"but admin states are ignored": {WholeWriteAddresses: behaviour.Taken, WholeWriteAdminStates: behaviour.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			inWorldOf(t, Config{MaxRetries: 3, Behaviour: known}, func(w *world) {
				w.pool(web, "vm=10.9.9.9")
				unlock := w.hold()
				w.change(web, "n1=10.0.0.1")
				before := w.standing(web)
				c := w.lanes.carry(w.t.Context(), web.LoadBalancer, w.whole(web))
				expectCarried(t, c, "web vm=10.9.9.9")
				shown, _ := w.putWhole(c.pools)
				c.settle(w.t.Context(), shown)
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

// Its Service has waited for it long enough: a pool that has just been made waits for neither
// company nor pace, but for what Azure has asked.
func TestANewPoolIsNotKeptWaiting(t *testing.T) {
	fills := Operation{New: true, queuedAt: seconds(1)}
	for _, row := range []struct {
		name string
		ops  []Operation
		h    history
		want time.Time
	}{
		{"for company", []Operation{fills}, history{}, seconds(1)},
		{"for pace", []Operation{fills}, history{passes: passes{taken: 3, refill: seconds(0)}}, seconds(1)},
		{"with a change that waits for company", []Operation{{queuedAt: seconds(0.9)}, fills}, history{}, seconds(0.9)},
		{"but for a Retry-After", []Operation{fills}, history{notBefore: seconds(60)}, seconds(60)},
		{"but for what is ours and not ready", []Operation{fills}, history{holdUntil: seconds(8)}, seconds(8)},
		{"but for a retry, which has met something", []Operation{{retryCount: 1}, fills}, history{lastAttempt: seconds(0)}, seconds(30)},
		{"once it has failed it is one like any other", []Operation{{New: true, retryCount: 1}}, history{lastAttempt: seconds(0)}, seconds(30)},
	} {
		if got := summarize("p", row.ops, row.h).readyAt(seconds(1), interval); !got.Equal(row.want) {
			t.Errorf("%s: ready at %s, want %s", row.name, got.Sub(start), row.want.Sub(start))
		}
	}
	empty, busy := summarize("z", []Operation{fills}, history{}), summarize("a", []Operation{{queuedAt: seconds(0)}}, history{})
	empty.ready, busy.ready = seconds(1), seconds(0.25)
	if !empty.before(busy, seconds(2), interval) {
		t.Error("of one namespace, the pool that serves nobody goes first")
	}
}

// A change that speaks for the same Service stands for the fill, and hurries all the same.
func TestAFillCoalesces(t *testing.T) {
	op := Operation{Ref: Ref{Name: "web"}, Pool: web, Service: ServiceName{Name: "web"}, queuedAt: seconds(0)}
	all := coalesce([]Operation{op}, op.asFill(seconds(1)))
	if len(all) != 1 || !all[0].New || !all[0].queuedAt.Equal(seconds(0)) || !all[0].ChangedAt.Equal(seconds(1)) {
		t.Errorf("%+v", all)
	}
	nobodys := Operation{Ref: op.Ref, Pool: web, New: true, queuedAt: seconds(0)}
	if all = coalesce([]Operation{nobodys}, op); len(all) != 1 || !all[0].New || all[0].Service != op.Service {
		t.Errorf("%+v", all)
	}
}

// What nobody keeps is not filled: there is no record that it could be on.
func TestAPoolWithoutABackendPoolIsLeftEmpty(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.level(api) // so that there is a lane
		planned := lb.Pool{ID: web, Addresses: addresses("n1=10.0.0.1")}
		unlock := w.hold()
		c := w.lanes.carry(w.t.Context(), web.LoadBalancer, []lb.Pool{planned})
		expectCarried(t, c, "web ")
		shown, _ := w.putWhole(c.pools)
		c.settle(w.t.Context(), shown)
		unlock()
		w.wait(time.Minute)
		w.expectCalls("+12s PUT balancer web:")
	})
}
