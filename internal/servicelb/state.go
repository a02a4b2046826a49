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

// State is what is known of the load balancer of one Service. Each part is written by its own
// methods.
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

// newState is that of a Service which this process sees for the first time.
func newState(s Service) State {
	// One that has been served before is not told so again.
	had := len(s.Shown) > 0
	return State{Placement: Placement{Record: s.Record}, Told: Told{had: had, announced: !s.Finalizer || !had}}
}

// absentState is that of a Service that went while nobody watched, and left something on a load
// balancer.
func absentState(place string) State {
	return State{Placement: Placement{Record: Record{Places: []string{place}}}, Told: Told{had: true, announced: true}}
}

// loses takes in that a BackendPool is gone.
func (st *State) loses(p LostPool) {
	if st.Level.needs(p) {
		st.Level.drop()
	}
	st.Filling.misses(p)
}

// wait returns how long until it is time to look again; 0 for never, or not now.
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
	if !until.After(now) { // it waits for somebody to change it
		return 0
	}
	return max(until.Sub(now), time.Millisecond)
}

// Placement says where parts of a Service may be. What is in memory is newer than the
// informer's copy.
type Placement struct {
	Record
	// bound is true once the informer's copy has shown Weir's finalizer.
	bound bool
	// free is true once nothing is left of the Service, though the informer's copy may not
	// show yet that Weir let go of it.
	free bool
	// absent is true for a Service that is gone: nothing can be written down of it any more.
	// deleting is true once it was seen to be deleted.
	absent, deleting bool
}

// shows takes in whether a copy of the informer has Weir's finalizer.
func (p *Placement) shows(finalizer bool) { p.bound = p.bound || finalizer }

// lostFinalizer reports whether somebody took the finalizer away, as far as the informer's copy
// tells, which may not show it yet: it is put back then.
func (p *Placement) lostFinalizer(s Service) bool { return p.bound && !s.Finalizer }

// next returns the record of a Service with the places and groups of another.
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

// recorded reports whether a record is written down already, and the Service kept, or not, as it
// says.
func (p *Placement) recorded(s Service, r Record, class string) bool {
	kept := s.Finalizer
	if len(r.Places) == 0 || s.Deleting { // one that goes gets no finalizer any more
		kept = s.Held(class)
	}
	return slices.Equal(p.Places, r.Places) && slices.Equal(p.Groups, r.Groups) && slices.Equal(p.LinkGroups, r.LinkGroups) &&
		kept == (len(r.Places) > 0) && reflect.DeepEqual(p.Class, r.Class)
}

// wrote takes in what is written down now.
func (p *Placement) wrote(r Record) { p.Record, p.free = r, false }

// leaves reports whether a Service that is gone may have left something.
func (p *Placement) leaves() bool { return len(p.Places) > 0 && !p.free }

// Pending is the last request for a Service.
type Pending struct {
	asked *balancer.Request
	// Running is true until the result is there, and Result is kept until it is written down.
	Running bool
	Result  *balancer.Result
	// selection and nodes are what it was made from; see Level.
	selection string
	nodes     []netip.Addr
}

// asks takes in a request that is about to be queued.
func (p *Pending) asks(req balancer.Request, selection string, nodes []netip.Addr) {
	*p = Pending{asked: &req, Running: true, selection: selection, nodes: nodes}
}

// ended takes in what came of it; nil is nothing yet.
func (p *Pending) ended(r *balancer.Result) {
	if r != nil {
		p.Running, p.Result = false, r
	}
}

// settled forgets the result.
func (p *Pending) settled() { p.Result = nil }

// same reports whether a request is another try of the last one, or a look.
func (p *Pending) same(req balancer.Request) bool {
	return p.asked != nil && p.asked.On == req.On && reflect.DeepEqual(p.asked.Desired, req.Desired)
}

// throttledFor is how long a Service waits at least that Azure throttled without a time: as long as a gate is
// closed then.
const throttledFor = 10 * time.Second

// Waiting says until when a Service waits. It is the work queue's back-off, kept here: each try
// ends in the middle of its request, which would be a success to the queue itself.
type Waiting struct {
	// notBefore is what Azure asked for.
	notBefore time.Time
	// failures counts those in a row that were Azure's, or the plan's.
	failures int
}

// fails returns when a Service is tried again after an error.
func (w *Waiting) fails(err error, pace backoff.Doubling, now time.Time) time.Duration {
	f, _ := errors.AsType[*fault.Fault](err)
	if f != nil && f.RetryAt.After(now) { // whatever became of the try
		w.notBefore = f.RetryAt
		return f.RetryAt.Sub(now)
	}
	w.failures++
	if f.Throttled() {
		return max(pace.After(w.failures), throttledFor)
	}
	return pace.After(w.failures)
}

// succeeds begins the back-off anew.
func (w *Waiting) succeeds() { w.failures = 0 }

// left is how long Azure asked to wait yet; 0 or less for no longer.
func (w *Waiting) left(now time.Time) time.Duration { return w.notBefore.Sub(now) }

// fillsAgainAfter is when a Service whose pools have to be filled first is asked for again
// although no lane has said that one of them is.
const fillsAgainAfter = 30 * time.Second

// Filling is what is known of pools that have to be filled before a Service gets the rest.
type Filling struct {
	// asked is the request that ended with them; nil if there are none. It is asked again at
	// until, or once one of the pools is filled.
	asked *balancer.Request
	until time.Time
	pools []lb.PoolID
	one   bool
}

// begins takes in a result that ended with pools that have to be filled.
func (f *Filling) begins(r balancer.Result, now time.Time) {
	f.asked, f.until, f.pools = &r.Request, now.Add(fillsAgainAfter), r.Filling
}

// filled takes in that one of the pools is filled, while it waits for that.
func (f *Filling) filled(is bool) { f.one = f.one || is && f.asked != nil }

// waits reports whether it is not time yet to ask for what is wanted again.
func (f *Filling) waits(w *service.Spec, again string, now time.Time) bool {
	return f.asked != nil && !f.one && now.Before(f.until) && f.asked.Again == again && reflect.DeepEqual(f.asked.Desired, w)
}

// misses ends the wait for a pool whose BackendPool is gone: nobody fills it before it is made again.
func (f *Filling) misses(lost LostPool) {
	if slices.ContainsFunc(f.pools, func(id lb.PoolID) bool {
		return strings.EqualFold(id.LoadBalancer.Name, lost.LoadBalancer) && strings.EqualFold(id.Name, lost.Pool)
	}) {
		f.ends()
	}
}

func (f *Filling) ends() { *f = Filling{} }
