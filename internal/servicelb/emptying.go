// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"reflect"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/plan"
	"weir.dev/weir/internal/service"
)

// emptiesAgainAfter is when a Service that waits for network interfaces to leave is asked for again
// although nobody has said that they have.
const emptiesAgainAfter = 30 * time.Second

// Emptying is what is known of pools that keep a load balancer which the Service has left, until
// their network interfaces have left, too. The Service keeps it on record as long.
type Emptying struct {
	// asked is the request that ended with them; nil if there are none. It is asked again at until,
	// or once a BackendPool of one of the pools has gone.
	asked *balancer.Request
	until time.Time
	pools []plan.Emptying
	one   bool
}

// begins takes in a result that ended with such pools.
func (m *Emptying) begins(r balancer.Result, now time.Time) {
	*m = Emptying{asked: &r.Request, until: now.Add(emptiesAgainAfter), pools: r.Emptying}
}

// emptied takes in that a BackendPool of one of the pools has gone.
func (m *Emptying) emptied(is bool) { m.one = m.one || is && m.asked != nil }

// due reports whether it is time to ask again.
func (m *Emptying) due(now time.Time) bool { return m.asked != nil && (m.one || !now.Before(m.until)) }

// waits reports whether it is not time yet to ask for what is wanted again.
func (m *Emptying) waits(w *service.Spec, again string, now time.Time) bool {
	return m.asked != nil && !m.due(now) && m.asked.Again == again && reflect.DeepEqual(m.asked.Desired, w)
}

func (m *Emptying) ends() { *m = Emptying{} }

// balancers are the names of the load balancers.
func (m *Emptying) balancers() []string {
	var names []string
	for _, e := range m.pools {
		names = union(names, []string{e.Pool.LoadBalancer.Name})
	}
	return names
}

// empty has network interfaces leave the pools that keep a load balancer.
func (r *Reconciler) empty(ctx context.Context, s Service, e *entry, res balancer.Result, now time.Time) error {
	if len(res.Emptying) == 0 {
		e.Told.emptying = nil
		return nil
	}
	e.Emptying.begins(res, now)
	r.States.showEmptying(e) // before there is anybody to tell that one has gone
	if err := r.cfg.Ledger.EmptyPools(ctx, res.Emptying); err != nil {
		return err
	}
	r.tell.emptying(s, &e.Told, res.Emptying)
	return nil
}
