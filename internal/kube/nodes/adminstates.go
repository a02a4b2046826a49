// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"sync"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/sleep"
	"weir.dev/weir/internal/words"
)

const (
	// newsGather is how long the first news of admin states waits for company: a write of
	// fifty pools is one event on a node that is in all of them.
	newsGather = time.Second
	// newsAgain is when what was not over then is looked at though no attempt was reported: a
	// pool that was paused meanwhile keeps nobody waiting.
	newsAgain = 30 * time.Second
)

// whom an event is about: a Service, a BackendPool that has none, or a Node.
type whom struct{ kind, namespace, name string }

func aboutNode(name string) whom { return whom{kind: "Node", name: name} }

// aboutPool is whose events speak of a pool.
func aboutPool(p *v1alpha1.BackendPool, is backendpool.Entitlement) whom {
	if is.Service != (poolschedule.ServiceName{}) {
		return whom{"Service", is.Service.Namespace, is.Service.Name}
	}
	return whom{"BackendPool", p.Namespace, p.Name}
}

// bulletin is what one of them has not been told yet. A node's speaks of itself alone.
type bulletin struct {
	// down and back are nodes that became Down, or take new flows again, in some pool. They
	// are told once it is so in all pools that the bulletin is about.
	down, back map[string]struct{}
	// failing are the pools in which admin states could not be set. failed is what the first
	// attempt met, and complained is true once it was told.
	failing    map[poolschedule.Ref]struct{}
	failed     string
	complained bool
	// told is true for a node of which Down was told: a pool that it joins later is no news.
	told bool
}

// AdminStates gathers what becomes of admin states, to tell it once to each whom it concerns.
type AdminStates struct {
	// Entitlement is what Weir has to do with the pool of a BackendPool. It is set before the
	// first attempt at one.
	Entitlement func(*v1alpha1.BackendPool, time.Time) backendpool.Entitlement
	// Members are those of a pool, with those that stay for a while. It is set with Entitlement.
	Members func(*v1alpha1.BackendPool) (membership.Set, error)

	snapshot *view.Snapshot
	statuses *backendpool.Statuses
	events   Recorder
	wake     chan struct{} // has room for one token

	mu        sync.Mutex // guards all below
	bulletins map[whom]*bulletin
}

// NewAdminStates returns one that has heard of nothing.
func NewAdminStates(snapshot *view.Snapshot, statuses *backendpool.Statuses, events Recorder) *AdminStates {
	return &AdminStates{snapshot: snapshot, statuses: statuses, events: events, wake: make(chan struct{}, 1), bulletins: map[whom]*bulletin{}}
}

// of returns a bulletin. The caller holds a.mu.
func (a *AdminStates) of(w whom) *bulletin {
	b := a.bulletins[w]
	if b == nil {
		b = &bulletin{down: map[string]struct{}{}, back: map[string]struct{}{}, failing: map[poolschedule.Ref]struct{}{}}
		a.bulletins[w] = b
	}
	return b
}

// open reports whether there is something to tell, or will be.
func (b *bulletin) open() bool { return len(b.down)+len(b.back)+len(b.failing) > 0 || b.complained }

// waits reports whether there is something to tell. If not it forgets of which nodes Down was
// told that do not drain any more.
func (a *AdminStates) waits(drains func(node string) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w, b := range a.bulletins {
		if b.open() {
			return true
		}
		if !drains(w.name) { // what is not open is a node's
			delete(a.bulletins, w)
		}
	}
	return false
}

// Hear takes what an attempt at a pool says of admin states. It waits for nothing.
func (a *AdminStates) Hear(p *v1alpha1.BackendPool, is backendpool.Entitlement, r poolupdate.Report, t backendpool.Turned) {
	about := aboutPool(p, is)
	news := len(t.Down)+len(t.Back) > 0
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range t.Down {
		a.of(about).down[name], a.of(aboutNode(name)).down[name] = struct{}{}, struct{}{}
	}
	for _, name := range t.Back {
		a.of(about).back[name], a.of(aboutNode(name)).back[name] = struct{}{}, struct{}{}
	}
	if backendpool.AdminFails(r) {
		news = a.of(about).fails(r) || news
		for _, name := range t.Owed {
			news = a.of(aboutNode(name)).fails(r) || news
		}
	}
	gone := r.Outcome == poolwrite.Stale || r.Outcome == poolwrite.Refused && !r.States
	for _, b := range a.bulletins {
		_, fails := b.failing[r.Ref]
		switch {
		case fails && (r.Settled || r.States):
			delete(b.failing, r.Ref)
			news = true
		case fails && gone:
			b.drop(r.Ref)
		}
	}
	if !news {
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// fails notes a pool in which admin states could not be set, and reports whether that is news.
func (b *bulletin) fails(r poolupdate.Report) bool {
	b.failing[r.Ref] = struct{}{}
	if b.failed != "" {
		return false
	}
	b.failed = words.OfFault(r.Fault, words.MaxMessage)
	return true
}

// drop forgets a pool that cannot be written any more. If it was the last to fail nobody is
// told that it succeeds.
func (b *bulletin) drop(ref poolschedule.Ref) {
	delete(b.failing, ref)
	if len(b.failing) == 0 {
		b.failed, b.complained = "", false
	}
}

// Run tells the news until the context is done. What comes later is told after the end
// of the lanes.
func (a *AdminStates) Run(ctx context.Context) {
	timer := time.NewTimer(newsAgain)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			_ = sleep.For(ctx, newsGather)
		case <-timer.C:
		}
		a.Tell()
		timer.Reset(newsAgain)
	}
}
