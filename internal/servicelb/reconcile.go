// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/rehearse"
	"weir.dev/weir/internal/removal"
	"weir.dev/weir/internal/service"
)

// Settings select Weir's Services and configure their load balancers.
type Settings struct {
	// Class is the spec.loadBalancerClass to serve; empty means Services without a class.
	Class string
	// AllowRemoval allows any number of addresses to be removed.
	AllowRemoval bool
	// Service are the settings for building specs.
	Service service.Settings
	// Guarded is set if Weir manages a security group. RequireEffectiveRestrictions rejects Services with
	// unenforceable restrictions.
	Guarded, RequireEffectiveRestrictions bool
	// LookAgainAfter is the resync period; 0 means never.
	LookAgainAfter time.Duration
	// Several are the load balancers to place Services on; empty if there is only one.
	Several []service.Configuration
}

// Config configures a Reconciler. All fields are required.
type Config struct {
	Settings  Settings
	Cluster   Cluster
	Ledger    Ledger
	Reporter  Reporter
	Balancers Balancers
	Rehearser Rehearser
	// Pace is the backoff after a rejection by Azure or the plan.
	Pace backoff.Doubling
	Log  *slog.Logger
}

// Reconciler reconciles the load balancers of Services. Its methods are safe for concurrent use.
type Reconciler struct {
	cfg      Config
	tell     teller
	removals removal.Tally
	States   *States
}

// New returns a Reconciler without state.
func New(cfg Config) *Reconciler {
	return &Reconciler{cfg: cfg, tell: teller{cfg.Reporter, cfg.Log, cfg.Settings}, States: &States{byName: map[string]*entry{}}}
}

// Reconcile performs the next step for a Service and updates its status. It returns the delay before the next
// call without a change; 0 for never.
func (r *Reconciler) Reconcile(ctx context.Context, name string, now time.Time) (again time.Duration, err error) {
	s, e, unlock := r.enter(ctx, name)
	if e == nil {
		return 0, nil
	}
	defer unlock()
	st := &e.State
	st.Told.concluded = nil
	r.States.hear(e)
	defer func() { r.States.show(e, s.Ours(r.cfg.Settings.Class), now) }()

	switch reason := r.cfg.Settings.whyKept(s); {
	case reason != "":
		r.tell.kept(ctx, s, &st.Told, reason) // until it is deleted, or another process serves its class
	case st.Pending.Running: // its result triggers a reconcile
	default:
		if res := st.Pending.Result; res != nil {
			err = r.settle(ctx, s, e, *res, now)
		}
		if _, failed := errors.AsType[*retryError](err); err == nil || failed {
			r.closeGroup(s, st, now) // independent of the load balancer
		}
		if err == nil && !st.Pending.Running && st.Waiting.left(now) <= 0 { // an event must not shorten a Retry-After
			err = r.next(ctx, s, e, now)
		}
		again, err = r.again(ctx, s, st, err, now)
		again = sooner(again, st.Closing.retryAfter(now))
	}
	if err == nil {
		again = sooner(again, r.endpoints(s, st, now))
		err = r.conclusions(ctx, s, st, now)
	} else if st.Told.trouble != "" { // show also errors of persisting a result
		err = errors.Join(err, r.conclusions(ctx, s, st, now))
	}
	return again, err
}

// enter locks a Service and returns it with its entry; a deleted one is replaced by a substitute. The entry is
// nil if there is nothing to do.
func (r *Reconciler) enter(ctx context.Context, name string) (s Service, e *entry, unlock func()) {
	class := r.cfg.Settings.Class
	s, exists := r.cfg.Cluster.Service(name)
	bare := false // deleted without its finalizer: only this process knows what is left
	switch {
	case !exists:
		e = r.States.known(name)
	case s.Ours(class) || s.Held(class):
		e = r.States.of(s)
	case s.Deleting || !s.LoadBalancer:
		if e = r.States.known(name); e != nil && e.uid != s.UID {
			e = nil
		}
		bare = true
	}
	if e == nil {
		r.forget(name)
		return Service{}, nil, nil
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return Service{}, nil, nil
	}
	unlock = func() { <-e.turn }
	if (!exists || bare) && !e.Placement.leaves() {
		unlock()
		r.forget(name)
		return Service{}, nil, nil
	}
	if exists {
		if e.Placement.absent { // it seemed deleted because a list was empty
			e.Level.drop()
		}
		e.Placement.absent, e.Placement.deleting = false, s.Deleting
		return s, e, unlock
	}
	e.Placement.absent = true
	return e.absent(name), e, unlock
}

func (r *Reconciler) forget(name string) {
	if e := r.States.known(name); e != nil {
		r.cfg.Balancers.Forget(name, e.owner)
	}
	r.States.forget(name)
	r.removals.Stays(name)
}

func (r *Reconciler) next(ctx context.Context, s Service, e *entry, now time.Time) error {
	st := &e.State
	d, err := r.desired(ctx, s)
	if s.Ours(r.cfg.Settings.Class) {
		r.tell.desired(s, &st.Told, d)
	}
	if err != nil {
		return err
	}
	st.Told.judges(d)
	d.NodesChanged = r.nodesChanged(st.Level, d.Spec)
	if d.Spec != nil {
		st.Placement.shows(s.Finalizer)
	}
	if !s.DryRun {
		st.Plan.ends()
	}
	switch Next(*st, s, d, now) {
	case Refuse: // until the Service changes
		st.Level.drop()
		st.Level.lookAt = time.Time{}
		st.Plan.ends()
		r.tell.complainOnce(s, &st.Told, Refused, d.wrong(), nil)
	case Publish:
		if st.Told.concluded == nil {
			err = r.cfg.Ledger.Publish(ctx, s, st.Level.addresses)
		}
	case Rehearse:
		err = r.rehearse(ctx, s, st, d, now)
	case Ask:
		err = r.ask(ctx, s, e, d, now)
	}
	return err
}

// ask queues a request. Load balancers that may then hold parts of the Service are persisted first.
func (r *Reconciler) ask(ctx context.Context, s Service, e *entry, d Desired, now time.Time) error {
	st := &e.State
	narrows := st.Level.request != nil && d.Spec.Narrows(st.Level.request.Desired)
	if err := r.cfg.Balancers.Defer(s.Name, d.Spec, narrows, now); err != nil {
		if st.Told.trouble != Failed || st.Pending.asked == nil || !reflect.DeepEqual(st.Pending.asked.Desired, d.Spec) { // otherwise the condition has the error
			r.tell.deferred(s, &st.Told, err)
		}
		return &retryError{error: err}
	}
	e.Filling.ends()
	e.Emptying.ends()
	r.States.showFilling(e)
	r.States.showEmptying(e)
	protect, pending := r.sparing(ctx, s, st, d.Spec, now)
	if pending {
		return nil
	}
	req, places, err := r.request(ctx, r.cfg.Balancers, s, st.Placement.Record, d)
	switch {
	case err != nil:
		if _, named := errors.AsType[groupError](err); named {
			r.cfg.Balancers.Reject(s.Name, d.Spec, err)
		}
		return &retryError{err, true}
	case len(places) == 0: // Azure holds nothing of it
		return r.writeDown(ctx, s, e, Release, balancer.Result{}, now)
	}
	req.Narrows = narrows
	req.Spare, req.Recorded = protect, withFormer(places, st.Placement.Places)
	st.Closing.forgetIfWider(d.Spec)
	err = r.record(ctx, s, st, Record{Places: req.Recorded, Groups: req.Groups, LinkGroups: req.LinkGroups}) // before Azure can hold any part of it
	if err == nil {
		r.tell.announce(s, st, req)
		st.Pending.asks(req, d.Selection, r.nodesAt(d.Spec, req.On))
		r.cfg.Balancers.Ensure(req)
	}
	return err
}

// record persists the load balancers and resource groups that may hold parts of a Service, and its class.
func (r *Reconciler) record(ctx context.Context, s Service, st *State, to Record) error {
	next := st.Placement.next(s, to, r.cfg.Settings.Class)
	if st.Placement.recorded(s, next, r.cfg.Settings.Class) {
		return nil
	}
	if st.Placement.absent {
		st.Placement.Places, st.Placement.Groups, st.Placement.LinkGroups = next.Places, next.Groups, next.LinkGroups
		return nil
	}
	if err := r.cfg.Ledger.Record(ctx, s, next); err != nil {
		return err
	}
	st.Placement.wrote(next)
	return nil
}

// again returns when to reconcile a Service again. The work queue retries Kubernetes errors. If no load
// balancer can be chosen, the deletion of other Services may help.
func (r *Reconciler) again(ctx context.Context, s Service, st *State, err error, now time.Time) (time.Duration, error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Deferred() {
		return max(f.RetryAt.Sub(now), time.Millisecond), nil
	}
	if reason, ok := errors.AsType[*retryError](err); ok {
		if reason.unasked && !rehearsed(err) && ctx.Err() == nil { // a shutdown is not an error of the Service
			st.Level.drop() // if it is reverted, the error must be cleared
			r.tell.complain(s, &st.Told, troubleOf(err), "nothing can be asked of Azure yet: ", reason.error)
			r.tell.warn(ctx, &st.Told, "no load balancer for the Service", s.Name, reason.error)
		}
		return st.Waiting.fails(err, r.cfg.Pace, now), nil
	}
	if err != nil {
		return 0, err
	}
	if wait := st.Waiting.left(now); wait > 0 {
		return wait, nil
	}
	class := r.cfg.Settings.Class
	if st.Placement.free && (st.Placement.absent || !s.Ours(class) && !s.Held(class)) {
		r.forget(s.Name)
	}
	return st.wait(now), nil
}

func rehearsed(err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && f.Code == rehearse.CodeRehearsed
}

// retryError ends a reconcile that must be repeated. The flag is set if no load balancer could be chosen or
// public IPs could not be read.
type retryError struct {
	error
	unasked bool
}

// Unwrap returns the cause.
func (e *retryError) Unwrap() error { return e.error }
