// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/pool/schedule"
)

// object is a watched object: a Service with its endpoints, or a Node.
type object struct{ kind, name string }

func newObjects(kind string, names []string) []object {
	var objects []object
	for _, n := range names {
		objects = append(objects, object{kind, n})
	}
	return objects
}

// watchDelay delays the watch events of objects. Like a real informer it keeps the order per object, may
// skip states, and delivers the latest state eventually.
type watchDelay struct {
	// delay is the delay of each state; 0 delivers none until the end.
	delay time.Duration
	// eventsOnly: the cache is current and only the event is late.
	eventsOnly bool
	// pending are objects with undelivered events.
	pending []object
}

// allNodes is the lag of all nodes, which share one watch.
var allNodes = object{"Node", ""}

func watchKey(o object) object {
	if o.kind == allNodes.kind {
		return allNodes
	}
	return o
}

// notifyChange delivers changed objects to the process, now or after their lag.
func (s *Stage) notifyChange(objects ...object) {
	p := s.runningProcess()
	if p == nil {
		return
	}
	for _, o := range objects {
		s.mu.Lock()
		l := p.watchDelays[watchKey(o)]
		if l == nil || l.eventsOnly {
			p.updateCache(o, s.cluster.view)
		}
		truth := s.cluster.clone()
		if l != nil && !slices.Contains(l.pending, o) {
			l.pending = append(l.pending, o)
		}
		s.mu.Unlock()
		switch {
		case l == nil:
			p.handleEvent(o, s.waitWorkers)
		case l.delay > 0:
			s.runAfter(l.delay, func() {
				s.mu.Lock()
				current := p.watchDelays[watchKey(o)] == l // otherwise a relist was faster
				if current && !l.eventsOnly {
					p.updateCache(o, truth)
				}
				s.mu.Unlock()
				if current {
					p.handleEvent(o, noOrder)
				}
			})
		}
	}
}

// updateCache updates an object in the process's cache. The caller holds s.mu.
func (p *process) updateCache(o object, as view) {
	if o.kind == allNodes.kind {
		addressSet(p.cache.nodes, as.nodes, o.name)
	} else {
		addressSet(p.cache.services, as.services, o.name)
		if p.cache.services[o.name] == nil { // a retry has no object anymore, unless it empties the pool of a deleted BackendPool
			for _, b := range p.stage.cluster.bindingsOf(o.name) {
				if !b.isDeleting {
					p.stage.pools[b.pool.Key()].retryAt = time.Time{}
				}
			}
		}
	}
}

func addressSet[T any](to, from map[string]T, key string) {
	if value, ok := from[key]; ok {
		to[key] = value
	} else {
		delete(to, key)
	}
}

// hasPendingEvents reports whether events are undelivered. The caller holds s.mu.
func (p *process) hasPendingEvents() bool {
	for _, l := range p.watchDelays {
		if len(l.pending) > 0 {
			return true
		}
	}
	return false
}

// sendPending ends a lag: it refreshes the cache and delivers the missed events, newest first.
func (p *process) sendPending(watch object) {
	s := p.stage
	s.mu.Lock()
	l := p.watchDelays[watch]
	delete(p.watchDelays, watch)
	if l == nil || p.killed {
		s.mu.Unlock()
		return
	}
	for _, o := range l.pending {
		p.updateCache(o, s.cluster.view)
	}
	slices.Reverse(l.pending)
	s.resetDeadlines(anyPool)
	s.mu.Unlock()
	for _, o := range l.pending {
		p.handleEvent(o, noOrder)
	}
}

func (s *Stage) endDelays() {
	p := s.runningProcess()
	if p == nil {
		return
	}
	s.mu.Lock()
	watches := slices.SortedFunc(maps.Keys(p.watchDelays), compareObjects)
	s.mu.Unlock()
	for _, w := range watches {
		p.sendPending(w)
	}
}

// waitWorkers waits until the workers have started on earlier events. Admin-state changes do not wait,
// and a waking worker briefly holds its lock, so the order would be random otherwise. Only the
// goroutine that drives the stage may call it.
func (s *Stage) waitWorkers() { s.opts.Settle() }

// noOrder is a no-op waitWorkers for other goroutines.
func noOrder() {}

// handleEvent handles an event like the controller: it queues an operation for each pool that is not known
// to be in sync with the cache.
func (p *process) handleEvent(o object, inTurn func()) {
	s := p.stage
	s.mu.Lock()
	if p.killed {
		s.mu.Unlock()
		return
	}
	services, pools := []string{o.name}, []*backendPool(nil)
	if o.kind == allNodes.kind {
		services = slices.DeleteFunc(slices.Sorted(maps.Keys(p.cache.services)), func(name string) bool { return !p.cache.services[name].hasEndpointOn(o.name) })
		pools = slices.DeleteFunc(s.cluster.bindingsOf(""), func(b *backendPool) bool { return b.isPaused || b.isDeleting || !slices.Contains(b.nodes, o.name) })
	}
	drains, alone := false, false
	if o.kind == allNodes.kind {
		drains, alone = p.updateNode(o.name)
	}
	s.mu.Unlock()
	if drains {
		p.queueAdminStates(o.name)
		inTurn()
	}
	if alone {
		return
	}
	for _, b := range pools {
		p.queueUpdate(b, true)
		inTurn()
	}
	for _, name := range services {
		p.queueService(name)
		inTurn()
	}
}

// deletedEvent represents the last event of a deleted Service. A new Service of the same name may get
// an event, but need not.
const deletedEvent = "something, before it went"

// queueService queues the pools of a Service.
func (p *process) queueService(name string) {
	s := p.stage
	s.mu.Lock()
	bindings, gone := s.cluster.bindingsOf(name), p.cache.services[name] == nil
	s.mu.Unlock()
	if gone {
		p.updater.RemoveService(schedule.ServiceName{Namespace: namespace, Name: name})
		s.mu.Lock()
		for _, b := range bindings {
			k := s.pools[b.pool.Key()]
			k.parkedUntil = time.Time{} // idle pools are not queued
			switch {
			case !b.isDeleting:
				k.queuedAt = time.Time{}
			case !k.queuedAt.IsZero(): // the removal remains
				k.queuedAt = time.Now()
			}
			if k.lastEvents[name] != "" {
				k.lastEvents[name] = deletedEvent
			}
		}
		s.mu.Unlock()
	}
	for _, b := range bindings {
		if !b.isPaused && !b.isDeleting {
			p.queueUpdate(b, true)
		}
	}
}

// isBlocked reports whether a condition other than an emulator fault keeps the pool out of sync. The
// caller holds s.mu.
func (s *Stage) isBlocked(k *pool) bool {
	p := s.process
	if p == nil || p.killed {
		return true
	}
	for _, other := range s.pools { // the worker is blocked for as long as Azure requested
		if other.sharesLoadBalancer(k) && other.isAttempted() && other.excusedUntil.After(time.Now()) {
			return true
		}
	}
	id := k.id.LoadBalancer.Key()
	return p.isStopping || p.resumeSignal != nil || p.requestsInAzure[id] > 0 || p.hasPendingEvents() || s.lockedBy[id] != nil || s.outages.blocksPool(k) ||
		p.lease != nil && (s.lease.isBlocked(p) || p.lease.isOverLimit())
}

// runAfter calls run after d unless the stage heals or closes first.
func (s *Stage) runAfter(d time.Duration, run func()) {
	s.mu.Lock()
	closing := s.closed
	s.mu.Unlock()
	s.runLater(func() {
		if waitFor(d, closing) {
			run()
		}
	})
}

// waitFor waits for d. It returns false if one of the channels was closed first.
func waitFor(d time.Duration, ended ...<-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	first, second := ended[0], (<-chan struct{})(nil)
	if len(ended) > 1 {
		second = ended[1]
	}
	select {
	case <-timer.C:
		return true
	case <-first:
	case <-second:
	}
	return false
}

// cancelDelays ends all pending delays.
func (s *Stage) cancelDelays() {
	s.mu.Lock()
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	s.mu.Unlock()
	s.opts.Settle()
}

func compareObjects(a, b object) int {
	switch {
	case a == b:
		return 0
	case a.kind < b.kind || a.kind == b.kind && a.name < b.name:
		return -1
	}
	return 1
}
