// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/poolschedule"
)

// object is a watched object: a Service with its endpoints, or a Node.
type object struct{ kind, name string }

func named(kind string, names []string) []object {
	var all []object
	for _, n := range names {
		all = append(all, object{kind, n})
	}
	return all
}

// lag delays the watch events of objects. Like a real informer it keeps the order per object, may
// skip states, and delivers the latest state eventually.
type lag struct {
	// by is the delay of each state; 0 delivers none until the end.
	by time.Duration
	// muted: the cache is current and only the event is late.
	muted bool
	// missed are objects with undelivered events.
	missed []object
}

// everyNode is the lag of all nodes, which share one watch.
var everyNode = object{"Node", ""}

// watchOf returns the watch of an object.
func watchOf(o object) object {
	if o.kind == everyNode.kind {
		return everyNode
	}
	return o
}

// changed delivers changed objects to the process, now or after their lag.
func (s *Stage) changed(objects ...object) {
	p := s.alive()
	if p == nil {
		return
	}
	for _, o := range objects {
		s.mu.Lock()
		l := p.lags[watchOf(o)]
		if l == nil || l.muted {
			p.show(o, s.cluster.view)
		}
		truth := s.cluster.clone()
		if l != nil && !slices.Contains(l.missed, o) {
			l.missed = append(l.missed, o)
		}
		s.mu.Unlock()
		switch {
		case l == nil:
			p.tell(o, s.inTurn)
		case l.by > 0:
			s.after(l.by, func() {
				s.mu.Lock()
				current := p.lags[watchOf(o)] == l // otherwise a relist was faster
				if current && !l.muted {
					p.show(o, truth)
				}
				s.mu.Unlock()
				if current {
					p.tell(o, asItComes)
				}
			})
		}
	}
}

// show updates an object in the process's cache. The caller holds s.mu.
func (p *process) show(o object, as view) {
	if o.kind == everyNode.kind {
		set(p.seen.nodes, as.nodes, o.name)
	} else {
		set(p.seen.services, as.services, o.name)
		if p.seen.services[o.name] == nil { // a retry has no object anymore
			for _, b := range p.stage.cluster.of(o.name) {
				p.stage.pools[b.pool.Key()].again = time.Time{}
			}
		}
	}
}

func set[T any](to, from map[string]T, key string) {
	if value, ok := from[key]; ok {
		to[key] = value
	} else {
		delete(to, key)
	}
}

// lagging reports whether events are undelivered. The caller holds s.mu.
func (p *process) lagging() bool {
	for _, l := range p.lags {
		if len(l.missed) > 0 {
			return true
		}
	}
	return false
}

// catchUp ends a lag: it refreshes the cache and delivers the missed events, newest first.
func (p *process) catchUp(watch object) {
	s := p.stage
	s.mu.Lock()
	l := p.lags[watch]
	delete(p.lags, watch)
	if l == nil || p.dead {
		s.mu.Unlock()
		return
	}
	for _, o := range l.missed {
		p.show(o, s.cluster.view)
	}
	slices.Reverse(l.missed)
	s.excuse(everywhere)
	s.mu.Unlock()
	for _, o := range l.missed {
		p.tell(o, asItComes)
	}
}

// relist ends all lags.
func (s *Stage) relist() {
	p := s.alive()
	if p == nil {
		return
	}
	s.mu.Lock()
	watches := slices.SortedFunc(maps.Keys(p.lags), compare)
	s.mu.Unlock()
	for _, w := range watches {
		p.catchUp(w)
	}
}

// inTurn waits until the workers have started on earlier events. Admin-state changes do not wait,
// and a waking worker briefly holds its lock, so the order would be random otherwise. Only the
// goroutine that drives the stage may call it.
func (s *Stage) inTurn() { s.opts.Settle() }

// asItComes is a no-op inTurn for other goroutines.
func asItComes() {}

// tell handles an event like the controller: it queues an operation for each pool that is not known
// to be in sync with the cache.
func (p *process) tell(o object, inTurn func()) {
	s := p.stage
	s.mu.Lock()
	if p.dead {
		s.mu.Unlock()
		return
	}
	services, pools := []string{o.name}, []*binding(nil)
	if o.kind == everyNode.kind {
		services = slices.DeleteFunc(slices.Sorted(maps.Keys(p.seen.services)), func(name string) bool { return !p.seen.services[name].runsOn(o.name) })
		pools = slices.DeleteFunc(s.cluster.of(""), func(b *binding) bool { return b.paused || b.deleting || !slices.Contains(b.nodes, o.name) })
	}
	drains, alone := false, false
	if o.kind == everyNode.kind {
		drains, alone = p.act(o.name)
	}
	s.mu.Unlock()
	if drains {
		p.direct(o.name)
		inTurn()
	}
	if alone {
		return
	}
	for _, b := range pools {
		p.bringLevel(b, true)
		inTurn()
	}
	for _, name := range services {
		p.serve(name)
		inTurn()
	}
}

// lastWords represents the last event of a deleted Service. A new Service of the same name may get
// an event, but need not.
const lastWords = "something, before it went"

// serve queues the pools of a Service.
func (p *process) serve(name string) {
	s := p.stage
	s.mu.Lock()
	bindings, gone := s.cluster.of(name), p.seen.services[name] == nil
	s.mu.Unlock()
	if gone {
		p.lanes.RemoveService(poolschedule.ServiceName{Namespace: namespace, Name: name})
		s.mu.Lock()
		for _, b := range bindings {
			k := s.pools[b.pool.Key()]
			k.parkedUntil = time.Time{} // idle pools are not queued
			switch {
			case !b.deleting:
				k.waits = time.Time{}
			case !k.waits.IsZero(): // the removal remains
				k.waits = time.Now()
			}
			if k.words[name] != "" {
				k.words[name] = lastWords
			}
		}
		s.mu.Unlock()
	}
	for _, b := range bindings {
		if !b.paused && !b.deleting {
			p.bringLevel(b, true)
		}
	}
}

// hindered reports whether a condition other than an emulator fault keeps the pool out of sync. The
// caller holds s.mu.
func (s *Stage) hindered(k *pool) bool {
	p := s.process
	if p == nil || p.dead {
		return true
	}
	for _, other := range s.pools { // the worker is blocked for as long as Azure requested
		if other.inLane(k) && other.underWay() && other.excuse.After(time.Now()) {
			return true
		}
	}
	id := k.id.LoadBalancer.Key()
	return p.stopping || p.asleep != nil || p.waiting[id] > 0 || p.lagging() || s.locked[id] != nil || s.outage.hinders(k) ||
		p.lease != nil && (s.lease.hinders(p) || p.lease.overstays())
}

// after calls run after d unless the stage heals or closes first.
func (s *Stage) after(d time.Duration, run func()) {
	s.mu.Lock()
	closing := s.closing
	s.mu.Unlock()
	s.later(func() {
		if waited(d, closing) {
			run()
		}
	})
}

// waited waits for d. It returns false if one of the channels was closed first.
func waited(d time.Duration, ended ...<-chan struct{}) bool {
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

// sendHome ends all pending delays.
func (s *Stage) sendHome() {
	s.mu.Lock()
	select {
	case <-s.closing:
	default:
		close(s.closing)
	}
	s.mu.Unlock()
	s.opts.Settle()
}

func compare(a, b object) int {
	switch {
	case a == b:
		return 0
	case a.kind < b.kind || a.kind == b.kind && a.name < b.name:
		return -1
	}
	return 1
}
