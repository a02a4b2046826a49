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

// emptiesAgainAfter is the retry period for a Service that waits for network interfaces to leave, without a
// notification.
const emptiesAgainAfter = 30 * time.Second

// Emptying tracks pools that block the deletion of a load balancer until their network interfaces have left.
// The load balancer stays recorded until then.
type Emptying struct {
	// asked is the request that must be repeated at until, or once a BackendPool of one of the pools is
	// deleted; nil if there is none.
	asked *balancer.Request
	until time.Time
	pools []plan.Emptying
	one   bool
}

func (m *Emptying) begins(r balancer.Result, now time.Time) {
	*m = Emptying{asked: &r.Request, until: now.Add(emptiesAgainAfter), pools: r.Emptying}
}

func (m *Emptying) emptied(is bool) { m.one = m.one || is && m.asked != nil }

func (m *Emptying) due(now time.Time) bool { return m.asked != nil && (m.one || !now.Before(m.until)) }

func (m *Emptying) waits(w *service.Spec, again string, now time.Time) bool {
	return m.asked != nil && !m.due(now) && m.asked.Again == again && reflect.DeepEqual(m.asked.Desired, w)
}

func (m *Emptying) ends() { *m = Emptying{} }

func (m *Emptying) balancers() []string {
	var names []string
	for _, e := range m.pools {
		names = union(names, []string{e.Pool.LoadBalancer.Name})
	}
	return names
}

// empty removes network interfaces from pools that block the deletion of a load balancer.
func (r *Reconciler) empty(ctx context.Context, s Service, e *entry, res balancer.Result, now time.Time) error {
	if len(res.Emptying) == 0 {
		e.Told.emptying = nil
		return nil
	}
	e.Emptying.begins(res, now)
	r.States.showEmptying(e) // publish first: a BackendPool may be deleted at once
	if err := r.cfg.Ledger.EmptyPools(ctx, res.Emptying); err != nil {
		return err
	}
	r.tell.emptying(s, &e.Told, res.Emptying)
	return nil
}
