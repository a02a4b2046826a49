// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"slices"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/service"
	"weir.dev/weir/internal/words"
)

// Closing is what is known of the clients that the security group admits to a Service. A Service that admits fewer is
// closed to the others before anything else is asked for it, also if it is invalid or its load balancer cannot be
// written.
type Closing struct {
	// holds is whom the group admits at most; nil if that is not known.
	holds *service.Restriction
	// asked is the restriction of the request under way.
	asked service.Restriction
	// waiting and again say when a request that failed is made again.
	waiting Waiting
	again   time.Time
	// told is the last error that was told.
	told string
}

// needs reports whether the group may admit clients whom a restriction does not.
func (c *Closing) needs(is service.Restriction) bool {
	return !is.IsOpen() && (c.holds == nil || !c.holds.Within(is))
}

// left is how long until a request that failed is made again; 0 if there is none.
func (c *Closing) left(now time.Time) time.Duration { return max(c.again.Sub(now), 0) }

// opens takes in that a request is under way after which the group may admit others.
func (c *Closing) opens(w *service.Spec) {
	if w != nil && c.holds != nil && !w.Restriction().Within(*c.holds) {
		c.holds = nil
	}
}

// reached takes in that the group admits nobody else.
func (c *Closing) reached(is service.Restriction) { *c = Closing{holds: &is} }

// restrictionOf returns who may connect to a Service at most, and whether that is to be enforced.
func (r *Reconciler) restrictionOf(s Service) (is service.Restriction, enforced bool) {
	if !r.cfg.Settings.Guarded || s.DryRun || !s.Ours(r.cfg.Settings.Class) {
		return is, false
	}
	is = service.RestrictionOf(s.Object)
	return is, !is.IsOpen()
}

// closeTo asks for the security group to be closed to clients whom a Service does not admit any more.
func (r *Reconciler) closeTo(s Service, st *State, now time.Time) {
	is, enforced := r.restrictionOf(s)
	if !enforced || len(st.Placement.Places) == 0 || st.Closing.left(now) > 0 || !st.Closing.needs(is) {
		return
	}
	if st.Closing.holds == nil && !is.Access.Limited() && !slices.ContainsFunc(st.Placement.Places, isPublic) {
		return // no rule lets anybody in to a Service that was internal without restrictions
	}
	st.Closing.asked, st.Pending.Running = is, true
	r.cfg.Balancers.Ensure(balancer.Request{
		Service: s.Name, Owner: service.Owner(s.UID), Created: s.Created, Shown: s.Shown, Groups: st.Placement.Groups, Again: s.WriteAgain,
		Desired: &service.Spec{Owner: service.Owner(s.UID), Internal: is.Internal, Access: is.Access}, Closes: true,
	})
}

func isPublic(place string) bool { return !service.IsInternal(place) }

// closed takes in what came of closing the security group.
func (r *Reconciler) closed(ctx context.Context, s Service, st *State, res balancer.Result, now time.Time) {
	c := &st.Closing
	st.Pending.settled()
	if res.Err == nil {
		c.reached(c.asked)
		return
	}
	c.again = now.Add(max(c.waiting.fails(res.Err, r.cfg.Pace, now), time.Millisecond))
	if words.Same(c.told, res.Err.Error()) {
		return
	}
	c.told = res.Err.Error()
	const text = "the security group may still admit clients that the Service does not: "
	r.cfg.Reporter.Tell(s, Event{Reason: ReasonSyncFailed, Warning: true, Text: "Error syncing load balancer: " + text, Err: res.Err})
	r.cfg.Log.WarnContext(ctx, "security group not closed to clients that the Service does not admit", "service", s.Name, "err", res.Err)
}
