// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/ratelimit"
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
	// HasSecurityGroup is set if Weir manages a security group. RequireEffectiveRestrictions rejects Services with
	// unenforceable restrictions.
	HasSecurityGroup, RequireEffectiveRestrictions bool
	// ResyncPeriod is the resync period; 0 means never.
	ResyncPeriod time.Duration
	// Configurations are the load balancers to place Services on; empty if there is only one.
	Configurations []service.Configuration
}

// Config configures a Reconciler. All fields are required.
type Config struct {
	Settings  Settings
	Cluster   Cluster
	Store     StatusStore
	Events    EventRecorder
	Balancers LoadBalancers
	DryRunner DryRunner
	// Backoff is the backoff after a rejection by Azure or the plan.
	Backoff ratelimit.Exponential
	Log     *slog.Logger
}

// Reconciler reconciles the load balancers of Services. Its methods are safe for concurrent use.
type Reconciler struct {
	cfg      Config
	events   eventRecorder
	removals removalTracker
	States   *States
}

// New returns a Reconciler without state.
func New(cfg Config) *Reconciler {
	return &Reconciler{cfg: cfg, events: eventRecorder{cfg.Events, cfg.Log, cfg.Settings}, States: &States{byName: map[string]*entry{}}}
}

// Reconcile performs the next step for a Service and updates its status. It returns the delay before the next
// call without a change; 0 for never.
func (r *Reconciler) Reconcile(ctx context.Context, name string, now time.Time) (requeueAfter time.Duration, err error) {
	s, e, unlock := r.lockService(ctx, name)
	if e == nil {
		return 0, nil
	}
	defer unlock()
	st := &e.State
	st.Events.writtenConditions = nil
	st.Sync.isPublished = false
	r.States.drainInbox(e)
	defer func() { r.States.updateView(e, s.IsManaged(r.cfg.Settings.Class), now) }()

	switch reason := r.cfg.Settings.retainReason(s); {
	case reason != "":
		r.events.reportOtherClass(ctx, s, &st.Events, reason) // until it is deleted, or another process serves its class
	case st.Pending.Running: // its result triggers a reconcile
	default:
		if res := st.Pending.Result; res != nil {
			err = r.processResult(ctx, s, e, *res, now)
		}
		if _, failed := errors.AsType[*retryError](err); err == nil || failed {
			r.closeGroup(s, st, now) // independent of the load balancer
		}
		if err == nil && !st.Pending.Running && st.Waiting.retryAfter(now) <= 0 { // an event must not shorten a Retry-After
			err = r.runStep(ctx, s, e, now)
		}
		requeueAfter, err = r.retryDelay(ctx, s, st, err, now)
		requeueAfter = minDelay(requeueAfter, st.Closing.retryAfter(now))
	}
	if err == nil {
		requeueAfter = minDelay(requeueAfter, r.updateEndpoints(s, st, now))
		err = r.updateConditions(ctx, s, st, now)
	} else if st.Events.failure != "" { // show also errors of persisting a result
		err = errors.Join(err, r.updateConditions(ctx, s, st, now))
	}
	return requeueAfter, err
}

// lockService locks a Service and returns it with its entry; a deleted one is replaced by a substitute. The entry is
// nil if there is nothing to do.
func (r *Reconciler) lockService(ctx context.Context, name string) (s Service, e *entry, unlock func()) {
	class := r.cfg.Settings.Class
	s, exists := r.cfg.Cluster.Service(name)
	bare := false // deleted without its finalizer: only this process knows what is left
	switch {
	case !exists:
		e = r.States.knownEntry(name)
	case s.IsManaged(class) || s.MayHaveResources(class):
		e = r.States.entryOf(s)
	case s.Deleting || !s.LoadBalancer:
		if e = r.States.knownEntry(name); e != nil && e.uid != s.UID {
			e = nil
		}
		bare = true
	}
	if e == nil {
		r.forgetService(name)
		return Service{}, nil, nil
	}
	select {
	case e.lock <- struct{}{}:
	case <-ctx.Done():
		return Service{}, nil, nil
	}
	unlock = func() { <-e.lock }
	if (!exists || bare) && !e.Placement.hasParts() {
		unlock()
		r.forgetService(name)
		return Service{}, nil, nil
	}
	if exists {
		if e.Placement.isGone { // it seemed deleted because a list was empty
			e.Sync.markStale()
		}
		e.Placement.isGone, e.Placement.deleting = false, s.Deleting
		e.retainAddress = s.Object.Annotations[service.RetainAddress]
		return s, e, unlock
	}
	e.Placement.isGone = true
	return e.goneService(name), e, unlock
}

func (r *Reconciler) forgetService(name string) {
	if e := r.States.knownEntry(name); e != nil {
		r.cfg.Balancers.ForgetService(name, e.owner)
	}
	r.States.forgetService(name)
	r.removals.RemoveService(name)
}

// closeGroup requests that the security group is closed to clients that the Service no longer admits.
func (r *Reconciler) closeGroup(s Service, st *State, now time.Time) {
	restriction, enforced := r.enforcedRestriction(s)
	if !enforced || len(st.Placement.LoadBalancers) == 0 || st.Closing.retryAfter(now) > 0 || !st.Closing.isNeeded(restriction) {
		return
	}
	if st.Closing.maxRestriction == nil && !restriction.Access.IsLimited() && !slices.ContainsFunc(st.Placement.LoadBalancers, isPublic) {
		return // an internal Service without restrictions has no rules
	}
	st.Closing.requested, st.Pending.Running = restriction, true
	r.cfg.Balancers.EnsureLoadBalancer(loadbalancer.Request{
		Service: s.Name, Owner: service.OwnerNameOf(s.UID), Created: s.Created, StatusAddresses: s.StatusAddresses, Groups: st.Placement.Groups, RetryToken: s.RetryToken,
		Desired: &service.Spec{Owner: service.OwnerNameOf(s.UID), Internal: restriction.Internal, Access: restriction.Access}, CloseOnly: true,
	})
}

func (r *Reconciler) runStep(ctx context.Context, s Service, e *entry, now time.Time) error {
	st := &e.State
	d, err := r.buildDesired(ctx, s)
	if s.IsManaged(r.cfg.Settings.Class) {
		r.events.reportIneffective(s, &st.Events, d)
	}
	if err != nil {
		return err
	}
	st.Events.recordValidity(d)
	d.NodesChanged = r.haveNodesChanged(st.Sync, d.Spec)
	if d.Spec != nil {
		st.Placement.recordFinalizer(s.Finalizer)
	}
	if !s.DryRun {
		st.DryRun.resetPlan()
	}
	switch NextStep(*st, s, d, now) {
	case StepReject: // until the Service changes
		st.Sync.markStale()
		st.Sync.resyncAt = time.Time{}
		st.DryRun.resetPlan()
		r.events.warnOnce(s, &st.Events, ConditionRejected, d.problemText(), nil)
	case StepPublish:
		st.Sync.isPublished = true
		if st.Events.writtenConditions == nil {
			err = r.cfg.Store.PublishAddresses(ctx, s, st.Sync.addresses)
		}
	case StepDryRun:
		err = r.runDryRun(ctx, s, st, d, now)
	case StepRequest:
		err = r.sendRequest(ctx, s, e, d, now)
	}
	return err
}

// sendRequest queues a request. Load balancers that may then hold parts of the Service are persisted first.
func (r *Reconciler) sendRequest(ctx context.Context, s Service, e *entry, d Desired, now time.Time) error {
	st := &e.State
	narrows := st.Sync.request != nil && d.Spec.IsNarrower(st.Sync.request.Desired)
	if err := r.cfg.Balancers.CheckDeferred(s.Name, d.Spec, s.RetryToken, narrows, now); err != nil {
		if st.Events.failure != ConditionFailed || st.Pending.request == nil || !reflect.DeepEqual(st.Pending.request.Desired, d.Spec) { // otherwise the condition has the error
			r.events.reportDeferred(s, &st.Events, err)
		}
		return &retryError{error: err}
	}
	e.PoolWait.stopWait()
	r.States.updateViewPools(e)
	protect, pending := r.checkRemoval(ctx, s, st, d.Spec, now)
	if pending {
		return nil
	}
	req, places, err := r.newRequest(ctx, r.cfg.Balancers, s, st.Placement.Record, d)
	switch {
	case err != nil:
		if _, named := errors.AsType[groupError](err); named {
			r.cfg.Balancers.RecordRejection(s.Name, d.Spec, s.RetryToken, err)
		}
		return &retryError{error: err, notSent: true}
	case len(places) == 0: // Azure holds nothing of it
		return r.persistResult(ctx, s, e, StepRelease, loadbalancer.Result{}, now)
	}
	req.OnlyRestricts = narrows
	req.ProtectAddresses, req.LoadBalancers = protect, addFormer(places, st.Placement.LoadBalancers)
	req.KeepFormer = st.Move.keepsFormer(req, st.Placement.LoadBalancers, now)
	st.Closing.resetIfWider(d.Spec)
	err = r.persistRecord(ctx, s, st, Record{LoadBalancers: req.LoadBalancers, Groups: req.Groups, LinkGroups: req.LinkGroups, Properties: mergeNames(st.Placement.Properties, d.properties())}) // before Azure can hold any part of it
	if err == nil {
		r.events.announceStart(s, st, req)
		st.Pending.startRequest(req, d.SelectorResult, r.nodesAt(d.Spec, req.On))
		r.cfg.Balancers.EnsureLoadBalancer(req)
	}
	return err
}

// persistRecord persists the load balancers and resource groups that may hold parts of a Service, and its class.
func (r *Reconciler) persistRecord(ctx context.Context, s Service, st *State, to Record) error {
	next := st.Placement.nextRecord(s, to, r.cfg.Settings.Class)
	if st.Placement.isRecorded(s, next, r.cfg.Settings.Class) {
		return nil
	}
	if st.Placement.isGone {
		st.Placement.LoadBalancers, st.Placement.Groups, st.Placement.LinkGroups, st.Placement.Properties = next.LoadBalancers, next.Groups, next.LinkGroups, next.Properties
		return nil
	}
	if err := r.cfg.Store.PersistRecord(ctx, s, next); err != nil {
		return err
	}
	st.Placement.setRecord(next)
	return nil
}
