// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"
	"time"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/backendpool"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
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

// adminNews gathers what becomes of admin states, to tell it once to each whom it concerns.
type adminNews struct {
	wake chan struct{} // has room for one token

	mu        sync.Mutex // guards all below
	bulletins map[whom]*bulletin
}

func newAdminNews() *adminNews {
	return &adminNews{wake: make(chan struct{}, 1), bulletins: map[whom]*bulletin{}}
}

// of returns a bulletin. The caller holds n.mu.
func (n *adminNews) of(w whom) *bulletin {
	b := n.bulletins[w]
	if b == nil {
		b = &bulletin{down: map[string]struct{}{}, back: map[string]struct{}{}, failing: map[poolschedule.Ref]struct{}{}}
		n.bulletins[w] = b
	}
	return b
}

// open reports whether there is something to tell, or will be.
func (b *bulletin) open() bool { return len(b.down)+len(b.back)+len(b.failing) > 0 || b.complained }

// waits reports whether there is something to tell. If not it forgets of which nodes Down was
// told that do not drain any more.
func (n *adminNews) waits(drains func(node string) bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w, b := range n.bulletins {
		if b.open() {
			return true
		}
		if !drains(w.name) { // what is not open is a node's
			delete(n.bulletins, w)
		}
	}
	return false
}

// hear takes what an attempt at a pool says of admin states. It waits for nothing.
func (n *adminNews) hear(about whom, r poolupdate.Report, t backendpool.Turned) {
	news := len(t.Down)+len(t.Back) > 0
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range t.Down {
		n.of(about).down[name], n.of(aboutNode(name)).down[name] = struct{}{}, struct{}{}
	}
	for _, name := range t.Back {
		n.of(about).back[name], n.of(aboutNode(name)).back[name] = struct{}{}, struct{}{}
	}
	if backendpool.AdminFails(r) {
		news = n.of(about).fails(r) || news
		for _, name := range t.Owed {
			news = n.of(aboutNode(name)).fails(r) || news
		}
	}
	gone := r.Outcome == poolwrite.Stale || r.Outcome == poolwrite.Refused && !r.States
	for _, b := range n.bulletins {
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
	case n.wake <- struct{}{}:
	default:
	}
}

// fails notes a pool in which admin states could not be set, and reports whether that is news.
func (b *bulletin) fails(r poolupdate.Report) bool {
	b.failing[r.Ref] = struct{}{}
	if b.failed != "" {
		return false
	}
	b.failed = faultText(r.Fault, maxMessage)
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

// tellNews tells the news until the context is done. What comes later is told after the end
// of the lanes.
func (c *Cluster) tellNews(ctx context.Context) {
	timer := time.NewTimer(newsAgain)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.news.wake:
			pause(ctx, newsGather)
		case <-timer.C:
		}
		c.tellAdminNews()
		timer.Reset(newsAgain)
	}
}

// pause waits, or until the context is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
