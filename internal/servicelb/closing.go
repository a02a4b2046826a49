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

// Closing is the state of the request that removes clients that a Service no longer admits from the security
// group. It precedes all other requests, so a restriction takes effect even if the Service is invalid or its
// load balancer cannot be written.
type Closing struct {
	// admits is the upper bound of the admitted clients; nil if unknown.
	admits    *service.Restriction
	requested service.Restriction
	// waiting is the backoff of failed requests; retryAt is when the next one is due.
	waiting   Waiting
	retryAt   time.Time
	lastError string
}

func (c *Closing) isNeeded(restriction service.Restriction) bool {
	return !restriction.IsOpen() && (c.admits == nil || !c.admits.IsWithin(restriction))
}

func (c *Closing) retryAfter(now time.Time) time.Duration { return max(c.retryAt.Sub(now), 0) }

// forgetIfWider clears the upper bound before a request that may admit more clients.
func (c *Closing) forgetIfWider(w *service.Spec) {
	if w != nil && c.admits != nil && !w.Restriction().IsWithin(*c.admits) {
		c.admits = nil
	}
}

func (c *Closing) record(restriction service.Restriction) { *c = Closing{admits: &restriction} }

func (r *Reconciler) enforcedRestriction(s Service) (restriction service.Restriction, enforced bool) {
	if !r.cfg.Settings.Guarded || s.DryRun || !s.Ours(r.cfg.Settings.Class) {
		return restriction, false
	}
	restriction = service.RestrictionOf(s.Object)
	return restriction, !restriction.IsOpen()
}

// closeGroup requests that the security group is closed to clients that the Service no longer admits.
func (r *Reconciler) closeGroup(s Service, st *State, now time.Time) {
	restriction, enforced := r.enforcedRestriction(s)
	if !enforced || len(st.Placement.Places) == 0 || st.Closing.retryAfter(now) > 0 || !st.Closing.isNeeded(restriction) {
		return
	}
	if st.Closing.admits == nil && !restriction.Access.Limited() && !slices.ContainsFunc(st.Placement.Places, isPublic) {
		return // an internal Service without restrictions has no rules
	}
	st.Closing.requested, st.Pending.Running = restriction, true
	r.cfg.Balancers.Ensure(balancer.Request{
		Service: s.Name, Owner: service.Owner(s.UID), Created: s.Created, Shown: s.Shown, Groups: st.Placement.Groups, Again: s.WriteAgain,
		Desired: &service.Spec{Owner: service.Owner(s.UID), Internal: restriction.Internal, Access: restriction.Access}, Closes: true,
	})
}

func isPublic(place string) bool { return !service.IsInternal(place) }

// settleClosing records the result of a closing request. Other requests do not wait for its retry.
func (r *Reconciler) settleClosing(ctx context.Context, s Service, st *State, res balancer.Result, now time.Time) {
	c := &st.Closing
	st.Pending.settled()
	if res.Err == nil {
		c.record(c.requested)
		return
	}
	c.retryAt = now.Add(max(c.waiting.fails(res.Err, r.cfg.Pace, now), time.Millisecond))
	if words.Same(c.lastError, res.Err.Error()) {
		return
	}
	c.lastError = res.Err.Error()
	const text = "failed to deny clients that the Service does not admit: "
	r.cfg.Reporter.Tell(s, Event{Reason: ReasonSyncFailed, Warning: true, Text: "Error syncing load balancer: " + text, Err: res.Err})
	r.cfg.Log.WarnContext(ctx, "security group not closed to clients that the Service does not admit", "service", s.Name, "err", res.Err)
}
