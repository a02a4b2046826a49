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

// Settings say which Services have a load balancer of Weir's, and what they get.
type Settings struct {
	// Class is the spec.loadBalancerClass of those Services; empty means those without one.
	Class string
	// AllowRemoval lets addresses be taken away, however many.
	AllowRemoval bool
	// Service is what specs are made from.
	Service service.Settings
	// Guarded is true if a security group says who may connect, and
	// RequireEffectiveRestrictions refuses Services whose restrictions have no effect.
	Guarded, RequireEffectiveRestrictions bool
	// LookAgainAfter is how often a load balancer is compared though nothing changed; 0 is
	// never.
	LookAgainAfter time.Duration
	// Several are the load balancers on which Services are placed; empty where there is one,
	// which has all of them.
	Several []service.Configuration
}

// Config is what a Reconciler works with. All fields are needed.
type Config struct {
	Settings  Settings
	Cluster   Cluster
	Ledger    Ledger
	Reporter  Reporter
	Balancers Balancers
	Rehearser Rehearser
	// Pace is when a Service is tried again that Azure, or the plan, refuses.
	Pace backoff.Doubling
	Log  *slog.Logger
}

// Reconciler brings the load balancers of Services on their way. Its methods may be called from any
// goroutine.
type Reconciler struct {
	cfg      Config
	tell     teller
	removals removal.Tally
	States   *States
}

// New returns a Reconciler that knows of no Service yet.
func New(cfg Config) *Reconciler {
	return &Reconciler{cfg: cfg, tell: teller{cfg.Reporter, cfg.Log, cfg.Settings}, States: &States{byName: map[string]*entry{}}}
}

// Reconcile has Azure hold what a Service wants, and says how far that is. It returns when it has
// to be called again though nothing changed; 0 for never.
func (r *Reconciler) Reconcile(ctx context.Context, name string, now time.Time) (again time.Duration, err error) {
	s, e, leave := r.enter(ctx, name)
	if e == nil {
		return 0, nil
	}
	defer leave()
	st := &e.State
	st.Told.concluded = nil
	r.States.hear(e)
	defer func() { r.States.show(e, s.Ours(r.cfg.Settings.Class), now) }()

	switch why := r.cfg.Settings.whyKept(s); {
	case why != "":
		r.tell.kept(ctx, s, &st.Told, why) // until it leaves, or another process serves its class
	case st.Pending.Running: // its end comes back here
	default:
		if res := st.Pending.Result; res != nil {
			err = r.settle(ctx, s, e, *res, now)
		}
		if _, failed := errors.AsType[*retryError](err); err == nil || failed {
			r.closeGroup(s, st, now) // does not wait for the load balancer
		}
		if err == nil && !st.Pending.Running && st.Waiting.left(now) <= 0 { // an event does not end what Azure asked for
			err = r.next(ctx, s, e, now)
		}
		again, err = r.again(ctx, s, st, err, now)
		again = sooner(again, st.Closing.retryAfter(now))
	}
	if err == nil {
		again = sooner(again, r.endpoints(s, st, now))
		err = r.conclusions(ctx, s, st, now)
	} else if st.Told.trouble != "" { // what keeps a result from being written down is shown as well
		err = errors.Join(err, r.conclusions(ctx, s, st, now))
	}
	return again, err
}

// enter returns a Service, or what stands in for one that is gone, with its entry and the turn to
// work on it; no entry if there is nothing to do.
func (r *Reconciler) enter(ctx context.Context, name string) (s Service, e *entry, leave func()) {
	class := r.cfg.Settings.Class
	s, there := r.cfg.Cluster.Service(name)
	bare := false // it leaves, and somebody took its finalizer away: what is left is known here alone
	switch {
	case !there:
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
	leave = func() { <-e.turn }
	if (!there || bare) && !e.Placement.leaves() {
		leave()
		r.forget(name)
		return Service{}, nil, nil
	}
	if there {
		if e.Placement.absent { // a list that was empty had us take it for gone
			e.Level.drop()
		}
		e.Placement.absent, e.Placement.deleting = false, s.Deleting
		return s, e, leave
	}
	e.Placement.absent = true
	return e.absent(name), e, leave
}

// forget drops what is known of a Service.
func (r *Reconciler) forget(name string) {
	if e := r.States.known(name); e != nil {
		r.cfg.Balancers.Forget(name, e.owner)
	}
	r.States.forget(name)
	r.removals.Stays(name)
}

// next does what follows for a Service that no request is under way for.
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
	case Refuse: // until somebody changes it
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

// ask queues a request, after it is written down where that may bring parts of the Service.
func (r *Reconciler) ask(ctx context.Context, s Service, e *entry, d Desired, now time.Time) error {
	st := &e.State
	narrows := st.Level.request != nil && d.Spec.Narrows(st.Level.request.Desired)
	if err := r.cfg.Balancers.Defer(s.Name, d.Spec, narrows, now); err != nil {
		if st.Told.trouble != Failed || st.Pending.asked == nil || !reflect.DeepEqual(st.Pending.asked.Desired, d.Spec) { // else the condition has the error
			r.tell.deferred(s, &st.Told, err)
		}
		return &retryError{error: err}
	}
	e.Filling.ends()
	e.Emptying.ends()
	r.States.showFilling(e)
	r.States.showEmptying(e)
	spare, waits := r.sparing(ctx, s, st, d.Spec, now)
	if waits {
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
	req.Spare, req.Recorded = spare, withFormer(places, st.Placement.Places)
	st.Closing.forgetIfWider(d.Spec)
	err = r.record(ctx, s, st, Record{Places: req.Recorded, Groups: req.Groups, LinkGroups: req.LinkGroups}) // before anything of it can be in Azure
	if err == nil {
		r.tell.announce(s, st, req)
		st.Pending.asks(req, d.Selection, r.nodesAt(d.Spec, req.On))
		r.cfg.Balancers.Ensure(req)
	}
	return err
}

// record writes down which load balancers may hold parts of a Service, which resource groups further
// public IPs and Private Link Services of it, and under which class it is served.
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

// again returns when a Service is looked at again that was. What is Kubernetes' trouble is the work
// queue's; why no load balancer can be chosen may be mended by other Services that go.
func (r *Reconciler) again(ctx context.Context, s Service, st *State, err error, now time.Time) (time.Duration, error) {
	if f, ok := errors.AsType[*fault.Fault](err); ok && f.Deferred() {
		return max(f.RetryAt.Sub(now), time.Millisecond), nil
	}
	if why, ok := errors.AsType[*retryError](err); ok {
		if why.unasked && !rehearsed(err) && ctx.Err() == nil { // what the end of the process stopped is no trouble of the Service's
			st.Level.drop() // one that is taken back has to end the complaint
			r.tell.complain(s, &st.Told, troubleOf(err), "nothing can be asked of Azure yet: ", why.error)
			r.tell.warn(ctx, &st.Told, "no load balancer for the Service", s.Name, why.error)
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

// rehearsed reports whether a rehearsal found no share of the reads: it is put off, and nobody waits
// for it.
func rehearsed(err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && f.Code == rehearse.CodeRehearsed
}

// retryError ends a look, and another follows. unasked is true if no load balancer can be chosen, or
// no public IP be looked for.
type retryError struct {
	error
	unasked bool
}

// Unwrap returns why.
func (e *retryError) Unwrap() error { return e.error }
