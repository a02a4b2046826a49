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
	// newsGather is how long admin state changes are collected: a write of fifty pools is one event on a
	// node.
	newsGather = time.Second
	// newsAgain is the interval at which open changes are checked without an attempt, because a pool may have
	// been paused.
	newsAgain = 30 * time.Second
)

// whom is the object of an event: a Service, a BackendPool without one, or a Node.
type whom struct{ kind, namespace, name string }

func aboutNode(name string) whom { return whom{kind: "Node", name: name} }

// aboutPool returns the object that gets the events of a pool.
func aboutPool(p *v1alpha1.BackendPool, is backendpool.Entitlement) whom {
	if is.Service != (poolschedule.ServiceName{}) {
		return whom{"Service", is.Service.Namespace, is.Service.Name}
	}
	return whom{"BackendPool", p.Namespace, p.Name}
}

// bulletin collects the pending events of one object; that of a node contains the node only.
type bulletin struct {
	// down and back are nodes that became Down or Up in some pool. The event follows once that applies to all
	// pools of the object.
	down, back map[string]struct{}
	// failing are the pools in which admin states could not be set. failed is the first error; complained is
	// true after its event.
	failing    map[poolschedule.Ref]struct{}
	failed     string
	complained bool
	// told is true after the Down event of a node: a pool that it joins later needs no event.
	told bool
}

// AdminStates collects changes of admin states and records one event per affected object.
type AdminStates struct {
	// Entitlement returns the entitlement of a BackendPool. It must be set before the first attempt.
	Entitlement func(*v1alpha1.BackendPool, time.Time) backendpool.Entitlement
	// Members returns the members of a pool, including retained ones. It must be set before the first
	// attempt.
	Members func(*v1alpha1.BackendPool) (membership.Set, error)

	snapshot *view.Snapshot
	statuses *backendpool.Statuses
	events   Recorder
	wake     chan struct{} // has capacity 1

	mu        sync.Mutex // guards the fields below
	bulletins map[whom]*bulletin
}

// NewAdminStates returns empty AdminStates.
func NewAdminStates(snapshot *view.Snapshot, statuses *backendpool.Statuses, events Recorder) *AdminStates {
	return &AdminStates{snapshot: snapshot, statuses: statuses, events: events, wake: make(chan struct{}, 1), bulletins: map[whom]*bulletin{}}
}

// of returns the bulletin of an object. The caller holds a.mu.
func (a *AdminStates) of(w whom) *bulletin {
	b := a.bulletins[w]
	if b == nil {
		b = &bulletin{down: map[string]struct{}{}, back: map[string]struct{}{}, failing: map[poolschedule.Ref]struct{}{}}
		a.bulletins[w] = b
	}
	return b
}

func (b *bulletin) open() bool { return len(b.down)+len(b.back)+len(b.failing) > 0 || b.complained }

// waits reports whether events are pending. Otherwise it drops the bulletins of nodes that no longer drain.
func (a *AdminStates) waits(drains func(node string) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w, b := range a.bulletins {
		if b.open() {
			return true
		}
		if !drains(w.name) { // a bulletin that is not open is a node's
			delete(a.bulletins, w)
		}
	}
	return false
}

// Hear records the admin state changes of an attempt. It does not block.
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

// fails records a pool in which admin states could not be set, and reports whether it is the first error.
func (b *bulletin) fails(r poolupdate.Report) bool {
	b.failing[r.Ref] = struct{}{}
	if b.failed != "" {
		return false
	}
	b.failed = words.OfFault(r.Fault, words.MaxMessage)
	return true
}

// drop removes a pool that can no longer be written. If it was the last failing one, no success event
// follows.
func (b *bulletin) drop(ref poolschedule.Ref) {
	delete(b.failing, ref)
	if len(b.failing) == 0 {
		b.failed, b.complained = "", false
	}
}

// Run records events until the context is done. Later changes are recorded after the pool updater has
// stopped.
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
