// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

const (
	// reconcileTakes is the delay of the reconciler after a removal.
	reconcileTakes = 5 * time.Millisecond
	// removeAgain is the delay before retrying a removal. It must differ from the delay of the
	// updater's read after a failed change, or their order would be random.
	removeAgain = time.Minute + time.Millisecond
)

// reconcile reconciles a BackendPool. changed is false when a process finds it at startup.
func (p *process) reconcile(b *binding, changed bool) {
	s := p.stage
	s.mu.Lock()
	dead, deleting, paused := p.dead || p.former, b.deleting, b.paused
	unused := paused || !p.ledger[b.ref].taken
	if !dead && paused {
		k := s.pools[b.pool.Key()]
		k.waits, k.again, k.parkedUntil = time.Time{}, time.Time{}, time.Time{}
		k.failed, k.givenUp, k.level, k.admin = 0, false, false, false
	}
	s.mu.Unlock()
	switch {
	case dead:
	case deleting && unused:
		p.letGo(b)
	case paused:
		p.lanes.Drop(b.ref)
	default:
		p.bringLevel(b, changed)
	}
}

// bringLevel queues an operation for a pool that is not known to be in sync, or from which members
// must be removed.
func (p *process) bringLevel(b *binding, changed bool) {
	s := p.stage
	s.mu.Lock()
	known, recorded := s.pools[b.pool.Key()], p.ledger[b.ref]
	dead := p.dead || p.former || s.cluster.byRef(b.ref) == nil
	gone := p.seen.gone(b) || b.deleting
	members, level := p.seen.members(b), known.level
	nothing := gone && !b.deleting && (!recorded.taken || len(recorded.written) == 0)
	s.mu.Unlock()
	if dead || nothing || level && !gone && p.lanes.IsInSync(b.pool, membership.Fingerprint(members)) {
		return
	}
	op := poolschedule.Operation{Ref: b.ref, Pool: b.pool, NotBefore: p.notBefore[b.ref]}
	if changed {
		op.ChangedAt = time.Now()
	}
	if !gone && b.service != "" {
		op.Service = poolschedule.ServiceName{Namespace: namespace, Name: b.service}
	}
	s.mu.Lock()
	op.LastNotification = b.told.recalled()
	known.added++
	if known.givenUp { // no work was needed so far
		known.trouble = later(known.trouble, time.Now())
	}
	known.failed, known.givenUp = 0, false
	known.looks = !changed && (known.looks || known.waits.IsZero())
	known.queues()
	s.mu.Unlock()
	p.lanes.Add(op)
}

// removed handles a BackendPool that is being deleted, after an attempt: it releases an empty pool,
// else retries the removal. The caller holds s.mu.
func (p *process) removed(b *binding, r poolupdate.Report) {
	s := p.stage
	if r.InSync && len(r.Written) == 0 || r.Outcome == poolwrite.Stale {
		s.later(func() {
			if travel(p.ctx, reconcileTakes+s.turn(b.ref)) == nil {
				p.letGo(b)
			}
		})
		return
	}
	at := time.Now().Add(removeAgain)
	p.recheck[b.ref] = at
	s.later(func() {
		if !waited(removeAgain, p.ctx.Done()) {
			return
		}
		s.mu.Lock()
		due := p.recheck[b.ref].Equal(at) && s.cluster.byRef(b.ref) != nil
		s.mu.Unlock()
		if due {
			p.reconcile(b, true)
		}
	})
}

// letGo deletes a BackendPool, and the process's state of its pool.
func (p *process) letGo(b *binding) {
	s := p.stage
	s.mu.Lock()
	if p.dead || p.former || s.cluster.byRef(b.ref) != b {
		s.mu.Unlock()
		return
	}
	k := s.pools[b.pool.Key()]
	if k.emptied = !b.paused && !k.deleted && p.ledger[b.ref].taken; k.emptied {
		s.nothingLeft(k)
	}
	if b.paused {
		s.leave(k)
	}
	s.trace(k.id.Name, "its BackendPool is gone")
	delete(s.cluster.bindings, k.id.Name)
	delete(p.ledger, b.ref)
	a, begun, ended := k.attempt, k.begun, k.ended
	excuse := later(k.patience, k.excuse) // the client keeps it even if the updater does not
	k.forget()
	k.excuse = excuse
	k.begun, k.ended = begun, ended // the worker was busy
	if a != nil && !a.over {
		a.orphan, k.attempt = true, a
	}
	s.mu.Unlock()
	p.lanes.Forget(b.pool)
}

// nothingLeft checks a released pool. The caller holds s.mu.
func (s *Stage) nothingLeft(k *pool) {
	held, _ := s.holds(k)
	for _, a := range held {
		if !foreignTo(k, a.IP) && !k.left.put[a.IP] {
			s.journal.left = append(s.journal.left, fmt.Sprintf("the BackendPool of %s goes, and %s is still in the pool", k.id.Name, a.IP))
		}
	}
}

// queues records a queued change.
func (k *pool) queues() {
	if k.waits.IsZero() {
		k.waits = time.Now()
	}
	if k.first.IsZero() {
		k.first = time.Now()
	}
}

// forget drops the process's state of a pool.
func (k *pool) forget() {
	var none time.Time
	k.attempt, k.level, k.parkedUntil, k.failed, k.row = nil, false, none, 0, 0
	k.words, k.surrender, k.again, k.waits, k.first, k.putOff = nil, "", none, none, none, none
	k.admin, k.looks = false, false
	k.begun, k.ended, k.patience, k.excuse = none, none, none, none
	k.paced = paced{added: k.added}
}

// claim creates a BackendPool for a pool. Members of a previous one have no owner until the pool is
// adopted. The caller holds s.mu.
func (s *Stage) claim(service string, nodes []string, k *pool) *binding {
	if k.claimed {
		held, _ := s.holds(k)
		for _, a := range held {
			if !foreignTo(k, a.IP) {
				k.foreign = append(k.foreign, a)
			}
		}
	}
	k.claimed, k.emptied, k.drifted, k.givenUp = true, false, false, false
	k.trouble = later(k.trouble, time.Now())
	return s.cluster.bind(service, nodes, k.id)
}

// backendPool returns the BackendPool of a pool. The caller holds s.mu.
func (s *Stage) backendPool(name string) (*binding, error) {
	if b := s.cluster.bindings[name]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("there is no BackendPool %s", name)
}

// kept reports whether an active BackendPool manages the pool.
func (s *Stage) kept(k *pool) bool {
	b := s.cluster.bindings[k.id.Name]
	return b != nil && !b.paused
}

// excuse restarts the time limit within which pools must get in sync.
func (s *Stage) excuse(hit func(*pool) bool) {
	for _, k := range s.pools {
		if hit(k) {
			k.trouble = later(k.trouble, time.Now())
		}
	}
}

func everywhere(*pool) bool { return true }

// inLane reports whether another pool has the same load balancer.
func (k *pool) inLane(other *pool) bool {
	return k.id.LoadBalancer.Key() == other.id.LoadBalancer.Key()
}
