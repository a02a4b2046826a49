// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// poolRetryInterval is the retry period for a Service that waits for pools, without a notification.
const poolRetryInterval = 30 * time.Second

// poolWaitReason is why a Service waits for pools.
type poolWaitReason string

const (
	waitFill  poolWaitReason = "fill"  // pools are filled before flows are sent there
	waitMove  poolWaitReason = "move"  // the new load balancer is probed, or its addresses become known
	waitDrain poolWaitReason = "drain" // network interfaces block the deletion of a load balancer, which stays recorded
)

// PoolWait is a Service's wait for pools to be filled or drained. It never waits for both: a request ends the wait, and
// its result starts at most one.
type PoolWait struct {
	reason poolWaitReason
	// request must be repeated at until, or once one of the pools is filled or the BackendPool of one that drains is
	// deleted; nil if it does not wait.
	request *loadbalancer.Request
	until   time.Time
	fills   []lb.PoolID
	drains  []plan.DrainingPool
	// notified is set by such an event.
	notified bool
}

func (w *PoolWait) startWait(reason poolWaitReason, r loadbalancer.Result, now time.Time) {
	*w = PoolWait{reason: reason, request: &r.Request, until: now.Add(poolRetryInterval), notified: w.notified}
	if reason == waitFill {
		w.fills = r.FillingPools
	} else {
		w.drains = r.DrainingPools
	}
}

func (w *PoolWait) startMoveWait(r loadbalancer.Result, until time.Time) {
	*w = PoolWait{reason: waitMove, request: &r.Request, until: until}
}

func (w *PoolWait) stopWait() { *w = PoolWait{} }

func (w *PoolWait) recordChange(changed bool) { w.notified = w.notified || changed && w.request != nil }

func (w *PoolWait) isDue(now time.Time) bool {
	return w.request != nil && (w.notified || !now.Before(w.until))
}

func (w *PoolWait) mustWait(desired *service.Spec, retryToken string, now time.Time) bool {
	return w.request != nil && !w.isDue(now) && w.request.RetryToken == retryToken && reflect.DeepEqual(w.request.Desired, desired)
}

// cancelFor ends the wait for a pool without BackendPool: it must be created again before it can be filled.
func (w *PoolWait) cancelFor(lost LostPool) {
	if slices.ContainsFunc(w.fills, func(id lb.PoolID) bool {
		return strings.EqualFold(id.LoadBalancer.Name, lost.LoadBalancer) && (lost.Pool == "" || strings.EqualFold(id.Name, lost.Pool))
	}) {
		w.stopWait()
	}
}

// drainingLoadBalancers returns the names of the load balancers that wait to be deleted.
func (w *PoolWait) drainingLoadBalancers() []string {
	var names []string
	for _, p := range w.drains {
		names = mergeNames(names, []string{p.Pool.LoadBalancer.Name})
	}
	return names
}

// drainPools removes network interfaces from pools that block the deletion of a load balancer.
func (r *Reconciler) drainPools(ctx context.Context, s Service, e *entry, res loadbalancer.Result, now time.Time) error {
	if len(res.DrainingPools) == 0 {
		r.events.reportDraining(s, &e.Events, nil)
		return nil
	}
	e.PoolWait.startWait(waitDrain, res, now)
	r.States.updateViewPools(e) // publish first: a BackendPool may be deleted at once
	if err := r.cfg.Store.DrainPools(ctx, res.DrainingPools); err != nil {
		return err
	}
	r.events.reportDraining(s, &e.Events, res.DrainingPools)
	return nil
}
