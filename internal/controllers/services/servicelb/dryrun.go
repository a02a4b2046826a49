// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"reflect"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

const dryRunTimeout = time.Minute

// DryRunState is the last reported dry run; the zero value if the Service has none.
type DryRunState struct {
	reported bool
	spec     *service.Spec
	text     string
	until    time.Time
}

// isCurrent reports whether the reported dry run is still valid.
func (d DryRunState) isCurrent(w *service.Spec, now time.Time) bool {
	return d.reported && reflect.DeepEqual(d.spec, w) && (d.until.IsZero() || now.Before(d.until))
}

func (d *DryRunState) recordPlan(w *service.Spec, text string, now time.Time, resyncAfter time.Duration) (changed bool) {
	changed = !d.reported || d.text != text
	*d = DryRunState{reported: true, spec: w, text: text}
	if resyncAfter > 0 {
		d.until = now.Add(resyncAfter)
	}
	return changed
}

func (d *DryRunState) resetPlan() { *d = DryRunState{} }

func (r *Reconciler) runDryRun(ctx context.Context, s Service, st *State, d Desired, now time.Time) error {
	if st.DryRun.isCurrent(d.Spec, now) {
		st.Events.resetForPlan()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	text, err := r.cfg.DryRunner.DryRun(ctx, s, func(ctx context.Context, by Locator) (loadbalancer.Request, bool, error) {
		req, places, err := r.newRequest(ctx, by, s, st.Placement.Record, d)
		return req, len(places) > 0, err
	})
	if err != nil {
		return &retryError{error: err, notSent: true}
	}
	if st.DryRun.recordPlan(d.Spec, text, now, r.cfg.Settings.ResyncPeriod) {
		r.cfg.Events.RecordEvent(s, Event{Reason: ReasonDryRun, Text: text})
	}
	st.Sync.markStale()
	st.Events.resetForPlan()
	if err := r.cfg.Store.RecordPlan(ctx, s, text); err != nil {
		st.DryRun.until = now // the event was sent, but the plan is not persisted yet
		return err
	}
	return nil
}

// RejectedError means no load balancer accepts a Service.
type RejectedError struct{ error }

// Unwrap returns the reason.
func (e *RejectedError) Unwrap() error { return e.error }

// BuildRequest returns the request for a Service, or why it is rejected. A request without load balancers means
// Azure holds nothing and nothing is wanted.
func (r *Reconciler) BuildRequest(ctx context.Context, by Locator, s Service) (req loadbalancer.Request, problems string, err error) {
	d, err := r.buildDesired(ctx, s)
	if err != nil {
		return req, "", err
	}
	if len(d.Problems) > 0 {
		return req, d.problemText(), nil
	}
	req, _, err = r.newRequest(ctx, by, s, r.States.entryOf(s).Placement.Record, d)
	if _, ofAzure := errors.AsType[*armerror.Fault](err); err != nil && !ofAzure && ctx.Err() == nil {
		err = &RejectedError{err}
	}
	return req, "", err
}

// PersistResult creates and deletes the BackendPools of a request, and its record, as Reconcile does after a
// success.
func (r *Reconciler) PersistResult(ctx context.Context, res loadbalancer.Result) error {
	if err := r.dropNodePools(ctx, res); err != nil {
		return err
	}
	s, exists := r.cfg.Cluster.Service(res.Service)
	switch {
	case !exists || res.Err != nil:
		return nil
	case res.Desired == nil:
		return r.cfg.Store.DropPools(ctx, s, nil, res.MissingPools)
	}
	if err := r.persistRecord(ctx, s, &r.States.entryOf(s).State, Record{LoadBalancers: []string{res.On.Name}, Groups: res.Groups, LinkGroups: res.LinkGroups, Properties: res.Desired.RequestedProperties}); err != nil {
		return err
	}
	return r.MakePools(ctx, s, res)
}

// RetainReason returns why a Service of another class retains its resources, with the remedy; empty if it does not.
func (r *Reconciler) RetainReason(s Service) string { return r.cfg.Settings.retainReason(s) }
