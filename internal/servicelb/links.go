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

// looksAtLinks is how often a load balancer is compared of which a frontend is published: consumers
// connect, and nothing in the cluster tells.
const looksAtLinks = 5 * time.Minute

// linkGroups are the resource groups of the Private Link Services that a Service asks for.
func (o Settings) linkGroups(w *service.Spec) []string {
	if w == nil || w.Link == nil {
		return nil
	}
	return []string{cmp.Or(w.Link.ResourceGroup, o.Service.PrivateLinks.ResourceGroup)}
}

// linked tells what came of a Private Link Service, each event once, and keeps the condition that
// shows it.
func (r *Reconciler) linked(ctx context.Context, s Service, e *entry, res balancer.Result) error {
	link := res.Link
	r.tell.links(s, &e.Told, link)
	if e.Pending.Result != nil { // it is told, should what follows have to be done again
		e.Pending.Result.Link.Events = nil
	}
	if asked := res.Desired != nil && res.Desired.Link != nil; asked && link.State == nil {
		return nil // it has not come to that
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

// links tells what was done, and once of the same what people have to mend.
func (r teller) links(s Service, t *Told, link privatelinkround.Outcome) {
	for _, e := range link.Events {
		r.reporter.Tell(s, Event{Reason: e.Reason, Text: e.Text})
	}
	if link.Err != nil {
		return
	}
	told := map[string]bool{}
	for _, e := range link.Warnings {
		if told[e.Text] = true; !t.links[e.Text] {
			r.reporter.Tell(s, Event{Reason: e.Reason, Warning: true, Text: e.Text})
		}
	}
	t.links = told
}

// unlinked is the error of a Service whose load balancer is there, and its Private Link Service is not
// as it asks.
func (r *Reconciler) unlinked(ctx context.Context, s Service, st *State, err error) error {
	st.Level.drop()
	r.tell.complainOnce(s, &st.Told, troubleOf(err), "private link service: ", err)
	r.tell.warn(ctx, &st.Told, "private link service not as the Service wants it", s.Name, err)
	return &retryError{error: err}
}

// showLink has others read how a Service is published.
func (all *States) showLink(e *entry, link *privatelinkround.State) {
	all.mu.Lock()
	defer all.mu.Unlock()
	e.shown.link = link
}

// Connections counts those to the Private Link Services of the cluster's Services.
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
