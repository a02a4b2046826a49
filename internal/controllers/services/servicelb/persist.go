// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/conflict"
	"weir.dev/weir/internal/service"
)

// persistFill creates the new pools, which fill before flows move. Until then the present rules and BackendPools remain,
// and the addresses of a Service that moves.
func (r *Reconciler) persistFill(ctx context.Context, s Service, e *entry, res loadbalancer.Result, now time.Time) error {
	e.Sync.markStale()
	e.PoolWait.startWait(waitFill, res, now)
	r.States.updateViewPools(e) // publish first: the pool may be filled at once
	r.events.reportFilling(s, &e.Events, res.FillingPools)
	if _, err := r.createPools(ctx, s, res.On, res.Pools); err != nil {
		return err
	}
	e.Sync.setStatusAddresses(res.Addresses)
	if len(res.RemoveFrom) > 0 { // a moving Service keeps its address until it can leave
		return nil
	}
	return r.cfg.Store.PublishAddresses(ctx, s, res.Addresses)
}

// persistMove publishes the new addresses once they are probed. The former load balancer still serves.
func (r *Reconciler) persistMove(ctx context.Context, s Service, e *entry, res loadbalancer.Result, now time.Time) error {
	e.Sync.markStale()
	e.PoolWait.startMoveWait(res, e.Move.advance(res.Request, e.Placement.LoadBalancers, now))
	if _, err := r.createPools(ctx, s, res.On, res.Pools); err != nil {
		return err
	}
	e.Sync.setStatusAddresses(res.Addresses)
	if !e.Move.publishes() {
		return nil
	}
	return r.cfg.Store.PublishAddresses(ctx, s, res.Addresses)
}

// persistDrain removes network interfaces from pools that block a deletion.
func (r *Reconciler) persistDrain(ctx context.Context, s Service, e *entry, res loadbalancer.Result, now time.Time) error {
	if err := r.drainPools(ctx, s, e, res, now); err != nil {
		return err
	}
	if err := r.withdrawAddresses(ctx, s, res); err != nil {
		return err
	}
	r.States.SetObserved(s, nil)
	e.Sync.markStale()
	if !res.NeedsDrain {
		e.Sync.setStatusAddresses(nil)
	}
	return nil
}

// persistRelease removes the finalizer: Azure has no parts of the Service left.
func (r *Reconciler) persistRelease(ctx context.Context, s Service, st *State, res loadbalancer.Result) error {
	if err := r.cfg.Store.DropInterimPools(ctx, res.MissingPools); err != nil {
		return err
	}
	if err := r.cfg.Store.DropPools(ctx, s, nil, res.MissingPools); err != nil {
		return err
	}
	if err := r.withdrawAddresses(ctx, s, res); err != nil {
		return err
	}
	if !s.Deleting {
		if err := r.reportConflicts(ctx, s, st, nil); err != nil {
			return err
		}
		if err := r.writeConditions(ctx, s, st, StatusUpdate{Conditions: clearedConditions()}); err != nil {
			return err
		}
	}
	r.States.SetObserved(s, nil)
	if err := r.persistRecord(ctx, s, st, Record{}); err != nil {
		return err
	}
	r.events.reportDeleted(s, &st.Events)
	r.clearBlocked(s, st)
	st.Sync.markStale()
	st.Sync.setStatusAddresses(nil)
	st.Placement.free = true
	st.Closing = AccessClosing{}
	return nil
}

// withdrawAddresses removes the addresses from the status, unless the Service is deleted or keeps a retained address.
func (r *Reconciler) withdrawAddresses(ctx context.Context, s Service, res loadbalancer.Result) error {
	if s.Deleting || res.NeedsDrain {
		return nil
	}
	return r.cfg.Store.PublishAddresses(ctx, s, nil)
}

// persistFinish persists that a Service is in sync.
func (r *Reconciler) persistFinish(ctx context.Context, s Service, e *entry, res loadbalancer.Result, now time.Time) error {
	st := &e.State
	if err := r.MakePools(ctx, s, res); err != nil {
		// Nodes are usually placed by the next try.
		if reason, ok := errors.AsType[NotPlacedError](err); ok && reason.Reason != "" {
			r.events.warnOnce(s, &st.Events, ConditionFailed, err.Error(), nil)
		}
		return err
	}
	if err := r.drainPools(ctx, s, e, res, now); err != nil {
		return err
	}
	if err := r.persistRecord(ctx, s, st, r.recordOf(e, res)); err != nil {
		return err
	}
	st.Sync.setStatusAddresses(res.Addresses)
	if err := r.publishInSync(ctx, s, st, res, now); err != nil {
		return err
	}
	if err := r.reportConflicts(ctx, s, st, res.Conflicts); err != nil {
		return err
	}
	r.events.reportUnusedIPs(s, &st.Events, res.Unused)
	if res.Link.Err == nil || st.Events.isAnnounced {
		r.events.reportReady(s, &st.Events, res) // before Removal is cleared
	}
	r.clearBlocked(s, st)
	st.Sync.recordInSync(res, st.Pending, now, r.cfg.Settings.ResyncPeriod)
	st.Closing.setRestriction(res.Desired.Restriction())
	return nil
}

// recordOf returns where parts of a Service remain after its last request.
func (r *Reconciler) recordOf(e *entry, res loadbalancer.Result) Record {
	rec := Record{LoadBalancers: mergeNames([]string{res.On.Name}, e.PoolWait.drainingLoadBalancers()), Groups: r.cfg.Settings.groupsOf(res.Desired), LinkGroups: r.cfg.Settings.linkGroups(res.Desired), Properties: res.Desired.RequestedProperties}
	if len(res.DrainingPools) > 0 { // a public IP remains with the load balancer
		rec.Groups = mergeNames(rec.Groups, res.Groups)
	}
	if res.Link.Err != nil || res.Link.IsIncomplete { // unwanted parts may still exist
		rec.LinkGroups = res.LinkGroups
	}
	return rec
}

func (r *Reconciler) dropNodePools(ctx context.Context, res loadbalancer.Result) error {
	for _, id := range res.DeletedLoadBalancers {
		if err := r.cfg.Store.DropNodePools(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// MakePools creates the BackendPools of a Service, now that Azure has its pools, and deletes former ones.
func (r *Reconciler) MakePools(ctx context.Context, s Service, res loadbalancer.Result) error {
	names, err := r.createPools(ctx, s, res.On, res.Pools)
	if err != nil {
		return err
	}
	if err := r.cfg.Store.DropInterimPools(ctx, res.MissingPools); err != nil {
		return err
	}
	return r.cfg.Store.DropPools(ctx, s, names, res.MissingPools)
}

func (r *Reconciler) createPools(ctx context.Context, s Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error) {
	if r.States.SetObserved(s, &ObservedPools{on, pools}) { // existing BackendPools wait for this
		r.cfg.Store.RequeuePools(s)
	}
	return r.cfg.Store.MakePools(ctx, s, on, pools)
}

func (r *Reconciler) reportConflicts(ctx context.Context, s Service, st *State, conflicts []conflict.Conflict) error {
	if st.Placement.isGone {
		return nil
	}
	cond := StatusCondition{Type: typeConflicts}
	if len(conflicts) > 0 {
		cond.Text = fmt.Sprint(conflicts)
	}
	if err := r.cfg.Store.UpdateConflicts(ctx, s, conflicts, st.Events.recordCondition(cond)); err != nil {
		return err
	}
	st.Events.lastConditions[typeConflicts] = cond
	for _, c := range conflicts {
		reported := slices.ContainsFunc(st.Sync.conflicts, func(o conflict.Conflict) bool { return o.Resource == c.Resource && o.Until.Equal(c.Until) })
		if !reported && !c.Until.IsZero() {
			r.cfg.Events.RecordEvent(s, Event{Reason: ReasonConflict, Warning: true, Conflict: &c, Of: len(conflicts)})
		}
	}
	st.Sync.conflicts = conflicts
	return nil
}
