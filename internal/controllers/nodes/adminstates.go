// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"sync"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/controllers/backendpools/backendpool"
	"weir.dev/weir/internal/controllers/cache"
	"weir.dev/weir/internal/humanize"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
	"weir.dev/weir/internal/ratelimit"
)

const (
	// gatherDelay is how long admin state changes are collected: a write of fifty pools is one event on a
	// node.
	gatherDelay = time.Second
	// adminRecheckInterval is the interval at which open changes are checked without an attempt, because a pool may have
	// been paused.
	adminRecheckInterval = 30 * time.Second
)

// subject is the object of an event: a Service, a BackendPool without one, or a Node.
type subject struct{ kind, namespace, name string }

func nodeSubject(name string) subject { return subject{kind: "Node", name: name} }

// poolSubject returns the object that gets the events of a pool.
func poolSubject(p *v1alpha1.BackendPool, binding backendpool.Binding) subject {
	if binding.Service != (schedule.ServiceName{}) {
		return subject{"Service", binding.Service.Namespace, binding.Service.Name}
	}
	return subject{"BackendPool", p.Namespace, p.Name}
}

// notice collects the pending events of one object; that of a node contains the node only.
type notice struct {
	// down and back are nodes that became Down or Up in some pool. The event follows once that applies to all
	// pools of the object.
	down, back map[string]struct{}
	// failing are the pools in which admin states could not be set. failureText is the first error, and hasFailureEvent
	// is true after its event.
	failing         map[schedule.Ref]struct{}
	failureText     string
	hasFailureEvent bool
	// hasDownEvent is true after the Down event of a node: a pool that it joins later needs no event.
	hasDownEvent bool
}

// AdminStates collects changes of admin states and records one event per affected object.
type AdminStates struct {
	// ResolveBinding returns the binding of a BackendPool. It must be set before the first attempt.
	ResolveBinding func(*v1alpha1.BackendPool, time.Time) backendpool.Binding
	// Members returns the members of a pool, including retained ones. It must be set before the first
	// attempt.
	Members func(*v1alpha1.BackendPool) (membership.Set, error)

	snapshot *cache.Snapshot
	statuses *backendpool.Statuses
	events   Recorder
	wake     chan struct{} // has capacity 1

	mu      sync.Mutex // guards the fields below
	notices map[subject]*notice
}

// NewAdminStates returns empty AdminStates.
func NewAdminStates(snapshot *cache.Snapshot, statuses *backendpool.Statuses, events Recorder) *AdminStates {
	return &AdminStates{snapshot: snapshot, statuses: statuses, events: events, wake: make(chan struct{}, 1), notices: map[subject]*notice{}}
}

// noticeOf returns the notice of an object. The caller holds a.mu.
func (a *AdminStates) noticeOf(w subject) *notice {
	b := a.notices[w]
	if b == nil {
		b = &notice{down: map[string]struct{}{}, back: map[string]struct{}{}, failing: map[schedule.Ref]struct{}{}}
		a.notices[w] = b
	}
	return b
}

func (n *notice) isOpen() bool {
	return len(n.down)+len(n.back)+len(n.failing) > 0 || n.hasFailureEvent
}

// hasPending reports whether events are pending. Otherwise it drops the notices of nodes that no longer drain.
func (a *AdminStates) hasPending(drains func(node string) bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w, b := range a.notices {
		if b.isOpen() {
			return true
		}
		if !drains(w.name) { // a notice that is not open is a node's
			delete(a.notices, w)
		}
	}
	return false
}

// RecordAttempt records the admin state changes of an attempt. It does not block.
func (a *AdminStates) RecordAttempt(p *v1alpha1.BackendPool, binding backendpool.Binding, r updater.Report, t backendpool.AdminChanges) {
	about := poolSubject(p, binding)
	changed := len(t.Down)+len(t.Back) > 0
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range t.Down {
		a.noticeOf(about).down[name], a.noticeOf(nodeSubject(name)).down[name] = struct{}{}, struct{}{}
	}
	for _, name := range t.Back {
		a.noticeOf(about).back[name], a.noticeOf(nodeSubject(name)).back[name] = struct{}{}, struct{}{}
	}
	if backendpool.HasAdminFailure(r) {
		changed = a.noticeOf(about).addFailure(r) || changed
		for _, name := range t.Failed {
			changed = a.noticeOf(nodeSubject(name)).addFailure(r) || changed
		}
	}
	poolGone := r.Outcome == diff.Stale || r.Outcome == diff.Rejected && !r.StatesInSync
	for _, b := range a.notices {
		_, fails := b.failing[r.Ref]
		switch {
		case fails && (r.InSync || r.StatesInSync):
			delete(b.failing, r.Ref)
			changed = true
		case fails && poolGone:
			b.dropPool(r.Ref)
		}
	}
	if !changed {
		return
	}
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// addFailure records a pool in which admin states could not be set, and reports whether it is the first error.
func (n *notice) addFailure(r updater.Report) bool {
	n.failing[r.Ref] = struct{}{}
	if n.failureText != "" {
		return false
	}
	n.failureText = humanize.FormatFault(r.Fault, humanize.MaxMessage)
	return true
}

// dropPool removes a pool that can no longer be written. If it was the last failing one, no success event
// follows.
func (n *notice) dropPool(ref schedule.Ref) {
	delete(n.failing, ref)
	if len(n.failing) == 0 {
		n.failureText, n.hasFailureEvent = "", false
	}
}

// Run records events until the context is done. Later changes are recorded after the pool updater has
// stopped.
func (a *AdminStates) Run(ctx context.Context) {
	timer := time.NewTimer(adminRecheckInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.wake:
			_ = ratelimit.Sleep(ctx, gatherDelay)
		case <-timer.C:
		}
		a.RecordEvents()
		timer.Reset(adminRecheckInterval)
	}
}
