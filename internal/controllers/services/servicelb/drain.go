// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"reflect"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// drainRetryInterval is the retry period for a Service that waits for network interfaces to leave, without a
// notification.
const drainRetryInterval = 30 * time.Second

// DrainState tracks pools that block the deletion of a load balancer until their network interfaces have left.
// The load balancer stays recorded until then.
type DrainState struct {
	// request is the request that must be repeated at until, or once a BackendPool of one of the pools is
	// deleted; nil if there is none.
	request  *loadbalancer.Request
	until    time.Time
	pools    []plan.DrainingPool
	notified bool
}

func (m *DrainState) startWait(r loadbalancer.Result, now time.Time) {
	*m = DrainState{request: &r.Request, until: now.Add(drainRetryInterval), pools: r.DrainingPools}
}

func (m *DrainState) recordDrained(is bool) { m.notified = m.notified || is && m.request != nil }

func (m *DrainState) isDue(now time.Time) bool {
	return m.request != nil && (m.notified || !now.Before(m.until))
}

func (m *DrainState) mustWait(w *service.Spec, again string, now time.Time) bool {
	return m.request != nil && !m.isDue(now) && m.request.RetryToken == again && reflect.DeepEqual(m.request.Desired, w)
}

func (m *DrainState) stopWait() { *m = DrainState{} }

func (m *DrainState) loadBalancerNames() []string {
	var names []string
	for _, e := range m.pools {
		names = mergeNames(names, []string{e.Pool.LoadBalancer.Name})
	}
	return names
}

// drainPools removes network interfaces from pools that block the deletion of a load balancer.
func (r *Reconciler) drainPools(ctx context.Context, s Service, e *entry, res loadbalancer.Result, now time.Time) error {
	if len(res.DrainingPools) == 0 {
		e.Events.drainingPools = nil
		return nil
	}
	e.Drain.startWait(res, now)
	r.States.publishDraining(e) // publish first: a BackendPool may be deleted at once
	if err := r.cfg.Store.DrainPools(ctx, res.DrainingPools); err != nil {
		return err
	}
	r.events.reportDraining(s, &e.Events, res.DrainingPools)
	return nil
}
