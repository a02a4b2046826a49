// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"reflect"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/service"
)

const rehearsalDeadline = time.Minute

// Planned is the last reported dry run; the zero value if the Service has none.
type Planned struct {
	said  bool
	spec  *service.Spec
	text  string
	until time.Time
}

// holds reports whether the reported dry run is still valid.
func (p Planned) holds(w *service.Spec, now time.Time) bool {
	return p.said && reflect.DeepEqual(p.spec, w) && (p.until.IsZero() || now.Before(p.until))
}

func (p *Planned) says(w *service.Spec, text string, now time.Time, lookAgainAfter time.Duration) (changed bool) {
	changed = !p.said || p.text != text
	*p = Planned{said: true, spec: w, text: text}
	if lookAgainAfter > 0 {
		p.until = now.Add(lookAgainAfter)
	}
	return changed
}

func (p *Planned) ends() { *p = Planned{} }

func (r *Reconciler) rehearse(ctx context.Context, s Service, st *State, d Desired, now time.Time) error {
	if st.Plan.holds(d.Spec, now) {
		st.Told.planned()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rehearsalDeadline)
	defer cancel()
	text, err := r.cfg.Rehearser.Rehearse(ctx, s, func(ctx context.Context, by Locator) (balancer.Request, bool, error) {
		req, places, err := r.request(ctx, by, s, st.Placement.Record, d)
		return req, len(places) > 0, err
	})
	if err != nil {
		return &retryError{err, true}
	}
	if st.Plan.says(d.Spec, text, now, r.cfg.Settings.LookAgainAfter) {
		r.cfg.Reporter.Tell(s, Event{Reason: ReasonDryRun, Text: text})
	}
	st.Level.drop()
	st.Told.planned()
	if err := r.cfg.Ledger.Planned(ctx, s, text); err != nil {
		st.Plan.until = now // the event was sent, but the plan is not persisted yet
		return err
	}
	return nil
}

// RefusedError means no load balancer accepts a Service.
type RefusedError struct{ error }

// Unwrap returns the reason.
func (e *RefusedError) Unwrap() error { return e.error }

// Request returns the request for a Service, or why it is rejected. A request without load balancers means
// Azure holds nothing and nothing is wanted.
func (r *Reconciler) Request(ctx context.Context, by Locator, s Service) (req balancer.Request, problems string, err error) {
	d, err := r.desired(ctx, s)
	if err != nil {
		return req, "", err
	}
	if len(d.Problems) > 0 {
		return req, d.wrong(), nil
	}
	req, _, err = r.request(ctx, by, s, r.States.of(s).Placement.Record, d)
	if _, ofAzure := errors.AsType[*fault.Fault](err); err != nil && !ofAzure && ctx.Err() == nil {
		err = &RefusedError{err}
	}
	return req, "", err
}

// WriteDown creates and deletes the BackendPools of a request, and its record, as Reconcile does after a
// success.
func (r *Reconciler) WriteDown(ctx context.Context, res balancer.Result) error {
	if err := r.dropGone(ctx, res); err != nil {
		return err
	}
	s, exists := r.cfg.Cluster.Service(res.Service)
	switch {
	case !exists || res.Err != nil:
		return nil
	case res.Desired == nil:
		return r.cfg.Ledger.DropPools(ctx, s, nil, res.Without)
	}
	if err := r.record(ctx, s, &r.States.of(s).State, Record{Places: []string{res.On.Name}, Groups: res.Groups, LinkGroups: res.LinkGroups}); err != nil {
		return err
	}
	return r.MakePools(ctx, s, res)
}

// WhyKept returns why a Service of another class retains its resources, with the remedy; empty if it does not.
func (r *Reconciler) WhyKept(s Service) string { return r.cfg.Settings.whyKept(s) }
