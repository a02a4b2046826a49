// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"cmp"
	"context"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/privatelink"
	"weir.dev/weir/internal/loadbalancer/privatelink/desired"
	"weir.dev/weir/internal/service"
)

// linkResync is the resync period of a load balancer with a published frontend: consumers connect without an
// event in the cluster.
const linkResync = 5 * time.Minute

func (settings Settings) linkGroups(w *service.Spec) []string {
	if w == nil || w.Link == nil {
		return nil
	}
	return []string{cmp.Or(w.Link.ResourceGroup, settings.Service.PrivateLinks.ResourceGroup)}
}

// reportLink reports the result for a Private Link Service, each event once, and updates its condition.
func (r *Reconciler) reportLink(ctx context.Context, s Service, e *entry, res loadbalancer.Result) error {
	link := res.Link
	r.events.reportLinkChanges(s, &e.Events, link)
	if e.Pending.Result != nil { // reported, even if later steps must be repeated
		e.Pending.Result.Link.Events = nil
	}
	if wantsLink := res.Desired != nil && res.Desired.Link != nil; wantsLink && link.State == nil {
		return nil // not reached yet
	}
	r.States.publishLink(e, link.State)
	if e.Placement.isGone || s.Deleting && link.State == nil {
		return nil
	}
	cond := StatusCondition{Type: typeLink}
	if link.State != nil {
		cond.Reason, cond.Text = link.State.Reason, link.State.Text
	}
	if err := r.cfg.Store.UpdateLink(ctx, s, link.State, e.Events.recordCondition(cond)); err != nil {
		return err
	}
	e.Events.lastConditions[typeLink] = cond
	return nil
}

func (r eventRecorder) reportLinkChanges(s Service, t *EventState, link privatelink.Result) {
	for _, e := range link.Events {
		r.recorder.RecordEvent(s, Event{Reason: e.Reason, Text: e.Text})
	}
	if link.Err != nil {
		return
	}
	reportNew(r, s, t, typeLink, link.Warnings, func(e privatelink.Event) string { return e.Text }, func(e privatelink.Event) Event {
		return Event{Reason: e.Reason, Warning: true, Text: e.Text}
	})
}

func (r *Reconciler) linkError(s Service, st *State, err error) error {
	st.Sync.markStale()
	r.events.warnOnce(s, &st.Events, conditionOf(err), "private link service: ", err)
	return &retryError{error: err, log: "private link service out of sync"}
}

func (states *States) publishLink(e *entry, link *privatelink.State) {
	states.mu.Lock()
	defer states.mu.Unlock()
	e.view.link = link
}

// CountConnections counts the connections to the Private Link Services of the cluster.
func (states *States) CountConnections() (n desired.Count) {
	states.mu.Lock()
	defer states.mu.Unlock()
	for _, e := range states.byName {
		if l := e.view.link; l != nil && l.Reason == privatelink.ReasonPublished {
			n = n.Add(l.Connections)
		}
	}
	return n
}
