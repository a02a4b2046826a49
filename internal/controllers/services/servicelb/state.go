// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/ratelimit"
)

// State is the state of one Service's load balancer. Each part is changed only by its own methods.
type State struct {
	Placement Placement
	Pending   Pending
	Sync      SyncState
	Closing   AccessClosing
	Waiting   Waiting
	Events    EventState
	Removal   Removal
	PoolWait  PoolWait
	Move      MoveState
	DryRun    DryRunState
	Endpoints Endpoints
	EmptyPool EmptyPoolState
}

// newState returns the state of a Service that this process sees for the first time.
func newState(s Service) State {
	// No repeated event for a Service that was served before.
	old := len(s.StatusAddresses) > 0
	return State{Placement: Placement{Record: s.Record}, Events: EventState{hadLoadBalancer: old, isAnnounced: !s.Finalizer || !old}}
}

// goneState returns the state of a Service that was deleted unobserved and has parts on a load balancer.
func goneState(place string) State {
	return State{Placement: Placement{Record: Record{LoadBalancers: []string{place}}}, Events: EventState{hadLoadBalancer: true, isAnnounced: true}}
}

func (st *State) recordLostPool(p LostPool) {
	if st.Sync.hasPool(p) {
		st.Sync.markStale()
	}
	st.Pending.recordLostPool(p)
	st.PoolWait.cancelFor(p)
}

// nextDelay returns the delay until the next reconcile; 0 for never, or not yet.
func (st *State) nextDelay(now time.Time) time.Duration {
	var until time.Time
	switch {
	case !st.DryRun.until.IsZero():
		until = st.DryRun.until
	case st.Pending.Running:
	case st.PoolWait.request != nil:
		until = st.PoolWait.until
	case st.Removal.addresses != nil:
		until = st.Removal.retryAt
	case st.Sync.request != nil:
		until = st.Sync.resyncAt
	}
	if !until.After(now) { // it waits for a change by the user
		return 0
	}
	return max(until.Sub(now), time.Millisecond)
}

// Placement is where parts of a Service may be. It may be newer than the informer cache.
type Placement struct {
	Record
	// bound is set once the informer cache has shown Weir's finalizer.
	bound bool
	// free is set once nothing is left of the Service; the informer cache may still show the finalizer.
	free bool
	// isGone is set for a deleted Service: nothing more can be persisted on it. deleting is set once a deletion
	// timestamp was seen.
	isGone, deleting bool
}

func (p *Placement) recordFinalizer(finalizer bool) { p.bound = p.bound || finalizer }

// hasLostFinalizer reports whether another client removed the finalizer, so that it is added again. The informer
// cache may be outdated.
func (p *Placement) hasLostFinalizer(s Service) bool { return p.bound && !s.Finalizer }

func (p *Placement) nextRecord(s Service, to Record, class string) Record {
	r := Record{LoadBalancers: slices.Clone(to.LoadBalancers), Groups: slices.Clone(to.Groups), LinkGroups: slices.Clone(to.LinkGroups), Properties: slices.Clone(to.Properties), Class: p.Class}
	switch {
	case len(to.LoadBalancers) == 0:
		r.Class = nil
	case s.IsManaged(class):
		r.Class = &class
	}
	return r
}

func (p *Placement) isRecorded(s Service, r Record, class string) bool {
	retained := s.Finalizer
	if len(r.LoadBalancers) == 0 || s.Deleting { // a deleted Service cannot get a finalizer
		retained = s.MayHaveResources(class)
	}
	return slices.Equal(p.LoadBalancers, r.LoadBalancers) && slices.Equal(p.Groups, r.Groups) && slices.Equal(p.LinkGroups, r.LinkGroups) && slices.Equal(p.Properties, r.Properties) &&
		retained == (len(r.LoadBalancers) > 0) && reflect.DeepEqual(p.Class, r.Class)
}

func (p *Placement) setRecord(r Record) { p.Record, p.free = r, false }

func (p *Placement) hasParts() bool { return len(p.LoadBalancers) > 0 && !p.free }

// Pending is the last request of a Service.
type Pending struct {
	request *loadbalancer.Request
	// Running is set until the result arrives. Result is kept until it is persisted.
	Running bool
	Result  *loadbalancer.Result
	// Inputs of the request.
	selectorResult string
	nodes          []netip.Addr
	// lostPool was deleted since the request started: its result may be older. Nil if none was.
	lostPool *LostPool
}

func (p *Pending) startRequest(req loadbalancer.Request, selection string, nodes []netip.Addr) {
	*p = Pending{request: &req, Running: true, selectorResult: selection, nodes: nodes}
}

func (p *Pending) setResult(r *loadbalancer.Result) {
	if r != nil {
		p.Running, p.Result = false, r
	}
}

func (p *Pending) clearResult() { p.Result, p.lostPool = nil, nil }

// recordLostPool records that a pool was deleted while the request runs or its result is not stored: the result may be
// older, so recordInSync marks it stale. Two pools are recorded as all of the load balancer, which bounds the memory.
func (p *Pending) recordLostPool(lost LostPool) {
	of := p.request
	if p.Result != nil {
		of = &p.Result.Request
	} else if !p.Running {
		return
	}
	switch {
	case !strings.EqualFold(of.On.Name, lost.LoadBalancer):
	case p.lostPool == nil:
		p.lostPool = &lost
	case !strings.EqualFold(p.lostPool.Pool, lost.Pool):
		p.lostPool = &LostPool{LoadBalancer: lost.LoadBalancer}
	}
}

func (p *Pending) isSame(req loadbalancer.Request) bool {
	return p.request != nil && p.request.On == req.On && reflect.DeepEqual(p.request.Desired, req.Desired)
}

// minThrottleWait is the minimum wait after a throttled request without Retry-After: how long the throttle gate is
// then closed.
const minThrottleWait = 10 * time.Second

// Waiting is the backoff of a Service. It replaces the work queue's backoff, which counts a queued request as a
// success.
type Waiting struct {
	notBefore time.Time
	failures  int
}

func (w *Waiting) recordFailure(err error, pace ratelimit.Exponential, now time.Time) time.Duration {
	f, _ := errors.AsType[*armerror.Fault](err)
	if f != nil && f.RetryAt.After(now) { // whatever the outcome
		w.notBefore = f.RetryAt
		return f.RetryAt.Sub(now)
	}
	w.failures++
	if f.IsThrottled() {
		return max(pace.DelayAfter(w.failures), minThrottleWait)
	}
	return pace.DelayAfter(w.failures)
}

func (w *Waiting) resetFailures() { w.failures = 0 }

// retryAfter returns the remaining Retry-After; 0 or less for none.
func (w *Waiting) retryAfter(now time.Time) time.Duration { return w.notBefore.Sub(now) }
