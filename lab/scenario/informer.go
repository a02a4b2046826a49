// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"maps"
	"slices"
	"time"

	"weir.dev/weir/internal/poolschedule"
)

// object is what a process watches: a Service with its endpoints, or a Node.
type object struct{ kind, name string }

func named(kind string, names []string) []object {
	var all []object
	for _, n := range names {
		all = append(all, object{kind, n})
	}
	return all
}

// lag is how the news of objects reach a process late. A real informer promises this
// much: states of one object come in their order, some may be left out, and the newest
// comes in the end.
type lag struct {
	// by is how much later each state comes; 0 is that none comes before the end.
	by time.Duration
	// muted: the snapshot is up to date, and only the event is late.
	muted bool
	// missed are the objects with news that nobody has told.
	missed []object
}

// everyNode is the lag of all nodes: they have one watch.
var everyNode = object{"Node", ""}

// watchOf is what an object's news come by.
func watchOf(o object) object {
	if o.kind == everyNode.kind {
		return everyNode
	}
	return o
}

// changed lets the process see objects that have changed, at once or later.
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
				current := p.lags[watchOf(o)] == l // else a relist was faster
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

// show has the snapshot hold an object as it is in a view. The caller holds s.mu.
func (p *process) show(o object, as view) {
	if o.kind == everyNode.kind {
		set(p.seen.nodes, as.nodes, o.name)
	} else {
		set(p.seen.services, as.services, o.name)
		if p.seen.services[o.name] == nil { // nobody needs what was to be tried again
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

// lagging reports whether some news have not arrived. The caller holds s.mu.
func (p *process) lagging() bool {
	for _, l := range p.lags {
		if len(l.missed) > 0 {
			return true
		}
	}
	return false
}

// catchUp ends a lag: the snapshot is the newest, and what was missed is told, the
// newest first.
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

// inTurn lets the lanes begin with what they were told before they are told more: a change
// of admin states waits for nothing, and a lane that wakes holds its lock for a moment, so
// which of two came first would be chance. It is for the goroutine that drives the stage.
func (s *Stage) inTurn() { s.opts.Settle() }

// asItComes is inTurn for all others.
func asItComes() {}

// tell handles an event as the controller would: it queues an operation for each pool
// that is not known to be level with the snapshot.
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

// lastWords stands for whatever a Service was told that is gone: the next of its name
// may be told of it, and need not.
const lastWords = "something, before it went"

// serve brings the pools of one Service level.
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
			k.parkedUntil = time.Time{} // what was parked is out of the queue
			switch {
			case !b.deleting:
				k.waits = time.Time{}
			case !k.waits.IsZero(): // the removal is left
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

// hindered reports whether something keeps the process from bringing a pool level that
// no fault of the emulator's is. The caller holds s.mu.
func (s *Stage) hindered(k *pool) bool {
	p := s.process
	if p == nil || p.dead {
		return true
	}
	for _, other := range s.pools { // it keeps the lane as long as Azure has asked for
		if other.inLane(k) && other.underWay() && other.excuse.After(time.Now()) {
			return true
		}
	}
	id := k.id.LoadBalancer.Key()
	return p.stopping || p.asleep != nil || p.waiting[id] > 0 || p.lagging() || s.locked[id] != nil || s.outage.hinders(k) ||
		p.lease != nil && (s.lease.hinders(p) || p.lease.overstays())
}

// after runs something at its time, unless the stage heals or closes before.
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

// waited waits, and reports whether the time has come; false if it was ended before.
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

// sendHome ends whatever waits for its time.
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
