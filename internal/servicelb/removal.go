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

// AllowRemovalAnnotation on a Service lets its own addresses be taken away, however many others
// would lose theirs.
const AllowRemovalAnnotation = service.AllowRemoval

// looksAgainHeld is how often a Service that waits for a person is asked for again: what would
// have taken its addresses away may be mended.
const looksAgainHeld = time.Minute

// Removal is what is known of the addresses that a Service would lose.
type Removal struct {
	// losing are these; nil if it would lose none.
	losing []netip.Addr
	// spec is what it wanted when that was found out, and again when it is asked for anew.
	spec  *service.Spec
	again time.Time
}

// begins takes in what a Service would lose.
func (rm *Removal) begins(w *service.Spec, addresses []netip.Addr, now time.Time) {
	if addresses == nil {
		addresses = []netip.Addr{}
	}
	*rm = Removal{losing: addresses, spec: w, again: now.Add(looksAgainHeld)}
}

func (rm *Removal) ends() { *rm = Removal{} }

// wouldLose reports whether a request ended because it would have taken addresses away.
func wouldLose(err error) (*balancer.RemovalError, bool) {
	return errors.AsType[*balancer.RemovalError](err)
}

// spares reports whether a request has to spare addresses: no person has asked to give them up.
// Somebody who deletes a Service, or changes its type or class, has.
func (o Settings) spares(s Service, p Placement, w *service.Spec) bool {
	switch {
	case o.AllowRemoval, s.AllowRemoval:
		return false
	case w == nil:
		return p.absent && !p.deleting // it went without a word
	}
	return true
}

// sparing reports whether a request takes no address away, and whether nothing is asked for now.
func (r *Reconciler) sparing(ctx context.Context, s Service, st *State, w *service.Spec, now time.Time) (spare, waits bool) {
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
	shown := r.cfg.Cluster.Addressed()
	all := r.States.addressed(shown)
	v := r.removals.Judge(s.Name, all, r.States.looked(shown), now)
	switch {
	case v.May:
		return false, false
	case !v.Again.IsZero():
		rm.again = v.Again
		return true, true
	}
	r.tell.held(ctx, s, st, v.Losing, all)
	if w == nil { // nobody can mend that but by bringing it back
		rm.again = now.Add(looksAgainHeld)
	}
	return true, now.Before(rm.again) && reflect.DeepEqual(w, rm.spec)
}

// loses notes that a Service would lose addresses.
func (r *Reconciler) loses(s Service, st *State, w *service.Spec, addresses []netip.Addr, now time.Time) {
	st.Removal.begins(w, addresses, now)
	r.removals.Loses(s.Name, now)
}

// spared notes that a Service loses nothing, or that a person asked for it.
func (r *Reconciler) spared(s Service, st *State) {
	if st.Told.trouble == Held {
		st.Told.trouble, st.Told.last = "", ""
	}
	st.Removal.ends()
	r.removals.Stays(s.Name)
}
