// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"errors"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/backoff"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// State is the state of one Service's load balancer. Each part is changed only by its own methods.
type State struct {
	Placement Placement
	Pending   Pending
	Level     Level
	Closing   Closing
	Waiting   Waiting
	Told      Told
	Removal   Removal
	Filling   Filling
	Emptying  Emptying
	Plan      Planned
	Endpoints Endpoints
	Unfilled  Unfilled
}

// newState returns the state of a Service that this process sees for the first time.
func newState(s Service) State {
	// No repeated event for a Service that was served before.
	had := len(s.Shown) > 0
	return State{Placement: Placement{Record: s.Record}, Told: Told{had: had, announced: !s.Finalizer || !had}}
}

// absentState returns the state of a Service that was deleted unobserved and has parts on a load balancer.
func absentState(place string) State {
	return State{Placement: Placement{Record: Record{Places: []string{place}}}, Told: Told{had: true, announced: true}}
}

func (st *State) loses(p LostPool) {
	if st.Level.needs(p) {
		st.Level.drop()
	}
	st.Filling.misses(p)
}

// wait returns the delay until the next reconcile; 0 for never, or not yet.
func (st *State) wait(now time.Time) time.Duration {
	var until time.Time
	switch {
	case !st.Plan.until.IsZero():
		until = st.Plan.until
	case st.Pending.Running:
	case st.Filling.asked != nil:
		until = st.Filling.until
	case st.Emptying.asked != nil:
		until = st.Emptying.until
	case st.Removal.losing != nil:
		until = st.Removal.again
	case st.Level.request != nil:
		until = st.Level.lookAt
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
	// absent is set for a deleted Service: nothing more can be persisted on it. deleting is set once a deletion
	// timestamp was seen.
	absent, deleting bool
}

func (p *Placement) shows(finalizer bool) { p.bound = p.bound || finalizer }

// lostFinalizer reports whether another client removed the finalizer, so that it is added again. The informer
// cache may be outdated.
func (p *Placement) lostFinalizer(s Service) bool { return p.bound && !s.Finalizer }

func (p *Placement) next(s Service, to Record, class string) Record {
	r := Record{Places: slices.Clone(to.Places), Groups: slices.Clone(to.Groups), LinkGroups: slices.Clone(to.LinkGroups), Class: p.Class}
	switch {
	case len(to.Places) == 0:
		r.Class = nil
	case s.Ours(class):
		r.Class = &class
	}
	return r
}

func (p *Placement) recorded(s Service, r Record, class string) bool {
	retained := s.Finalizer
	if len(r.Places) == 0 || s.Deleting { // a deleted Service cannot get a finalizer
		retained = s.Held(class)
	}
	return slices.Equal(p.Places, r.Places) && slices.Equal(p.Groups, r.Groups) && slices.Equal(p.LinkGroups, r.LinkGroups) &&
		retained == (len(r.Places) > 0) && reflect.DeepEqual(p.Class, r.Class)
}

func (p *Placement) wrote(r Record) { p.Record, p.free = r, false }

func (p *Placement) leaves() bool { return len(p.Places) > 0 && !p.free }

// Pending is the last request of a Service.
type Pending struct {
	asked *balancer.Request
	// Running is set until the result arrives. Result is kept until it is persisted.
	Running bool
	Result  *balancer.Result
	// Inputs of the request.
	selection string
	nodes     []netip.Addr
}

func (p *Pending) asks(req balancer.Request, selection string, nodes []netip.Addr) {
	*p = Pending{asked: &req, Running: true, selection: selection, nodes: nodes}
}

func (p *Pending) ended(r *balancer.Result) {
	if r != nil {
		p.Running, p.Result = false, r
	}
}

func (p *Pending) settled() { p.Result = nil }

func (p *Pending) same(req balancer.Request) bool {
	return p.asked != nil && p.asked.On == req.On && reflect.DeepEqual(p.asked.Desired, req.Desired)
}

// throttledFor is the minimum wait after a throttled request without Retry-After: how long the throttle gate is
// then closed.
const throttledFor = 10 * time.Second

// Waiting is the backoff of a Service. It replaces the work queue's backoff, which counts a queued request as a
// success.
type Waiting struct {
	notBefore time.Time
	failures  int
}

func (w *Waiting) fails(err error, pace backoff.Doubling, now time.Time) time.Duration {
	f, _ := errors.AsType[*fault.Fault](err)
	if f != nil && f.RetryAt.After(now) { // whatever the outcome
		w.notBefore = f.RetryAt
		return f.RetryAt.Sub(now)
	}
	w.failures++
	if f.Throttled() {
		return max(pace.After(w.failures), throttledFor)
	}
	return pace.After(w.failures)
}

func (w *Waiting) succeeds() { w.failures = 0 }

// left returns the remaining Retry-After; 0 or less for none.
func (w *Waiting) left(now time.Time) time.Duration { return w.notBefore.Sub(now) }

// fillsAgainAfter is the retry period for a Service that waits for its pools to fill, without a notification.
const fillsAgainAfter = 30 * time.Second

// Filling tracks pools that must be filled before a request can continue.
type Filling struct {
	// asked is the request that must be repeated at until, or once one of the pools is filled; nil if there is
	// none.
	asked *balancer.Request
	until time.Time
	pools []lb.PoolID
	one   bool
}

func (f *Filling) begins(r balancer.Result, now time.Time) {
	f.asked, f.until, f.pools = &r.Request, now.Add(fillsAgainAfter), r.Filling
}

func (f *Filling) filled(is bool) { f.one = f.one || is && f.asked != nil }

func (f *Filling) waits(w *service.Spec, again string, now time.Time) bool {
	return f.asked != nil && !f.one && now.Before(f.until) && f.asked.Again == again && reflect.DeepEqual(f.asked.Desired, w)
}

// misses ends the wait for a pool without BackendPool: it must be created again before it can be filled.
func (f *Filling) misses(lost LostPool) {
	if slices.ContainsFunc(f.pools, func(id lb.PoolID) bool {
		return strings.EqualFold(id.LoadBalancer.Name, lost.LoadBalancer) && strings.EqualFold(id.Name, lost.Pool)
	}) {
		f.ends()
	}
}

func (f *Filling) ends() { *f = Filling{} }
