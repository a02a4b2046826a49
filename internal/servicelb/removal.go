// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
)

// AllowRemovalAnnotation on a Service allows its addresses to be removed, however many other Services would
// lose theirs.
const AllowRemovalAnnotation = service.AllowRemoval

// looksAgainHeld is the retry period of a blocked removal: the cause may be fixed.
const looksAgainHeld = time.Minute

// Removal tracks the addresses that a Service would lose.
type Removal struct {
	losing []netip.Addr
	// spec would lose them; the request is repeated at the given time.
	spec  *service.Spec
	again time.Time
}

func (rm *Removal) begins(w *service.Spec, addresses []netip.Addr, now time.Time) {
	if addresses == nil {
		addresses = []netip.Addr{}
	}
	*rm = Removal{losing: addresses, spec: w, again: now.Add(looksAgainHeld)}
}

func (rm *Removal) ends() { *rm = Removal{} }

func wouldLose(err error) (*balancer.RemovalError, bool) {
	return errors.AsType[*balancer.RemovalError](err)
}

// spares reports whether a request must not remove addresses because the user did not ask for it. Deleting a
// Service or changing its type or class is asking for it.
func (o Settings) spares(s Service, p Placement, w *service.Spec) bool {
	switch {
	case o.AllowRemoval, s.AllowRemoval:
		return false
	case w == nil:
		return p.absent && !p.deleting // it was deleted without an event
	}
	return true
}

// sparing reports whether the request must spare addresses, and whether it must wait.
func (r *Reconciler) sparing(ctx context.Context, s Service, st *State, w *service.Spec, now time.Time) (protect, pending bool) {
	if !r.cfg.Settings.spares(s, st.Placement, w) {
		r.spared(s, st)
		return false, false
	}
	rm := &st.Removal
	if rm.losing == nil && w == nil {
		r.loses(s, st, nil, s.Shown, now)
	}
	if rm.losing == nil {
		return true, false
	}
	services := r.cfg.Cluster.Addressed()
	all := r.States.addressed(services)
	v := r.removals.Judge(s.Name, all, r.States.looked(services), now)
	switch {
	case v.May:
		return false, false
	case !v.Again.IsZero():
		rm.again = v.Again
		return true, true
	}
	r.tell.held(ctx, s, st, v.Losing, all)
	if w == nil { // only recreating the Service helps
		rm.again = now.Add(looksAgainHeld)
	}
	return true, now.Before(rm.again) && reflect.DeepEqual(w, rm.spec)
}

func (r *Reconciler) loses(s Service, st *State, w *service.Spec, addresses []netip.Addr, now time.Time) {
	st.Removal.begins(w, addresses, now)
	r.removals.Loses(s.Name, now)
}

func (r *Reconciler) spared(s Service, st *State) {
	if st.Told.trouble == Held {
		st.Told.trouble, st.Told.last = "", ""
	}
	st.Removal.ends()
	r.removals.Stays(s.Name)
}
