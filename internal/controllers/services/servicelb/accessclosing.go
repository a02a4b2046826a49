// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"time"

	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// AccessClosing is the state of the request that removes clients that a Service no longer admits from the security
// group. It precedes all other requests, so a restriction takes effect even if the Service is invalid or its
// load balancer cannot be written.
type AccessClosing struct {
	// maxRestriction is the upper bound of the admitted clients; nil if unknown.
	maxRestriction *service.Restriction
	requested      service.Restriction
	// waiting is the backoff of failed requests; retryAt is when the next one is due.
	waiting   Waiting
	retryAt   time.Time
	lastError string
}

func (c *AccessClosing) isNeeded(restriction service.Restriction) bool {
	return !restriction.IsOpen() && (c.maxRestriction == nil || !c.maxRestriction.IsWithin(restriction))
}

func (c *AccessClosing) retryAfter(now time.Time) time.Duration { return max(c.retryAt.Sub(now), 0) }

// resetIfWider clears the upper bound before a request that may admit more clients.
func (c *AccessClosing) resetIfWider(w *service.Spec) {
	if w != nil && c.maxRestriction != nil && !w.Restriction().IsWithin(*c.maxRestriction) {
		c.maxRestriction = nil
	}
}

func (c *AccessClosing) setRestriction(restriction service.Restriction) {
	*c = AccessClosing{maxRestriction: &restriction}
}

func (r *Reconciler) enforcedRestriction(s Service) (restriction service.Restriction, enforced bool) {
	if !r.cfg.Settings.HasSecurityGroup || s.DryRun || !s.IsManaged(r.cfg.Settings.Class) {
		return restriction, false
	}
	restriction = service.RestrictionOf(s.Object)
	return restriction, !restriction.IsOpen()
}

func isPublic(place string) bool { return !service.IsInternal(place) }

// resolveClosing records the result of a closing request. Other requests do not wait for its retry.
func (r *Reconciler) resolveClosing(ctx context.Context, s Service, st *State, res loadbalancer.Result, now time.Time) {
	c := &st.Closing
	st.Pending.clearResult()
	if res.Err == nil {
		c.setRestriction(c.requested)
		return
	}
	c.retryAt = now.Add(max(c.waiting.recordFailure(res.Err, r.cfg.Backoff, now), time.Millisecond))
	if humanize.EqualMessages(c.lastError, res.Err.Error()) {
		return
	}
	c.lastError = res.Err.Error()
	const text = "failed to deny clients that the Service does not admit: "
	r.cfg.Events.RecordEvent(s, Event{Reason: ReasonSyncFailed, Warning: true, Text: "Error syncing load balancer: " + text, Err: res.Err})
	r.cfg.Log.WarnContext(ctx, "security group not closed to clients that the Service does not admit", "service", s.Name, "err", res.Err)
}
