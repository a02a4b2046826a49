// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"cmp"
	"context"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/privatelink"
	"weir.dev/weir/internal/privatelinkround"
	"weir.dev/weir/internal/service"
)

// looksAtLinks is the resync period of a load balancer with a published frontend: consumers connect without an
// event in the cluster.
const looksAtLinks = 5 * time.Minute

func (o Settings) linkGroups(w *service.Spec) []string {
	if w == nil || w.Link == nil {
		return nil
	}
	return []string{cmp.Or(w.Link.ResourceGroup, o.Service.PrivateLinks.ResourceGroup)}
}

// linked reports the result for a Private Link Service, each event once, and updates its condition.
func (r *Reconciler) linked(ctx context.Context, s Service, e *entry, res balancer.Result) error {
	link := res.Link
	r.tell.links(s, &e.Told, link)
	if e.Pending.Result != nil { // reported, even if later steps must be repeated
		e.Pending.Result.Link.Events = nil
	}
	if wantsLink := res.Desired != nil && res.Desired.Link != nil; wantsLink && link.State == nil {
		return nil // not reached yet
	}
	r.States.showLink(e, link.State)
	if e.Placement.absent || s.Deleting && link.State == nil {
		return nil
	}
	is := Verdict{Type: typeLink}
	if link.State != nil {
		is.Reason, is.Text = link.State.Reason, link.State.Text
	}
	if err := r.cfg.Ledger.Linked(ctx, s, link.State, e.Told.writes(is)); err != nil {
		return err
	}
	e.Told.wrote[typeLink] = is
	return nil
}

func (r teller) links(s Service, t *Told, link privatelinkround.Outcome) {
	for _, e := range link.Events {
		r.reporter.Tell(s, Event{Reason: e.Reason, Text: e.Text})
	}
	if link.Err != nil {
		return
	}
	reported := map[string]bool{}
	for _, e := range link.Warnings {
		if reported[e.Text] = true; !t.links[e.Text] {
			r.reporter.Tell(s, Event{Reason: e.Reason, Warning: true, Text: e.Text})
		}
	}
	t.links = reported
}

func (r *Reconciler) unlinked(ctx context.Context, s Service, st *State, err error) error {
	st.Level.drop()
	r.tell.complainOnce(s, &st.Told, troubleOf(err), "private link service: ", err)
	r.tell.warn(ctx, &st.Told, "private link service not as the Service wants it", s.Name, err)
	return &retryError{error: err}
}

func (all *States) showLink(e *entry, link *privatelinkround.State) {
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.link = link
}

// Connections counts the connections to the Private Link Services of the cluster.
func (all *States) Connections() (n privatelink.Count) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, e := range all.byName {
		if l := e.shown.link; l != nil && l.Reason == privatelinkround.ReasonPublished {
			n = n.Plus(l.Connections)
		}
	}
	return n
}
