// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"time"

	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

const (
	// reconcileDelay is the delay of the reconciler after a removal.
	reconcileDelay = 5 * time.Millisecond
	// removeRetryDelay is the delay before retrying a removal. It must differ from the delay of the
	// updater's read after a failed change, or their order would be random.
	removeRetryDelay = time.Minute + time.Millisecond
)

// reconcilePool reconciles a BackendPool. changed is false when a process finds it at startup.
func (p *process) reconcilePool(b *backendPool, changed bool) {
	s := p.stage
	s.mu.Lock()
	dead, deleting, paused := p.killed || p.isOldLeader, b.isDeleting, b.isPaused
	unused := paused || !p.statusEntries[b.ref].taken
	if !dead && paused {
		k := s.pools[b.pool.Key()]
		k.queuedAt, k.retryAt, k.parkedUntil = time.Time{}, time.Time{}, time.Time{}
		k.failures, k.gaveUp, k.inSync, k.adminQueued = 0, false, false, false
	}
	s.mu.Unlock()
	switch {
	case dead:
	case deleting && unused:
		p.releasePool(b)
	case paused:
		p.updater.Drop(b.ref)
	default:
		p.queueUpdate(b, changed)
	}
}

// queueUpdate queues an operation for a pool that is not known to be in sync, or from which members
// must be removed.
func (p *process) queueUpdate(b *backendPool, changed bool) {
	s := p.stage
	s.mu.Lock()
	known, recorded := s.pools[b.pool.Key()], p.statusEntries[b.ref]
	dead := p.killed || p.isOldLeader || s.cluster.byRef(b.ref) == nil
	gone := p.cache.isServiceMissing(b) || b.isDeleting
	members, inSync := p.cache.desiredMembers(b), known.inSync
	nothing := gone && !b.isDeleting && (!recorded.taken || len(recorded.written) == 0)
	s.mu.Unlock()
	if dead || nothing || inSync && !gone && p.updater.IsInSync(b.pool, membership.Fingerprint(members)) {
		return
	}
	op := schedule.Operation{Ref: b.ref, Pool: b.pool, NotBefore: p.retryAfter[b.ref]}
	if changed {
		op.ChangedAt = time.Now()
	}
	if !gone && b.service != "" {
		op.Service = schedule.ServiceName{Namespace: namespace, Name: b.service}
	}
	s.mu.Lock()
	op.LastNotification = b.notification.recalledState()
	known.operations++
	if known.gaveUp { // no work was needed so far
		known.faultEnd = latest(known.faultEnd, time.Now())
	}
	known.failures, known.gaveUp = 0, false
	known.isReadQueued = !changed && (known.isReadQueued || known.queuedAt.IsZero())
	known.queueChange()
	s.mu.Unlock()
	p.updater.Add(op)
}

// finishRemove handles a BackendPool that is being deleted, after an attempt: it releases an empty pool,
// else retries the removal. The caller holds s.mu.
func (p *process) finishRemove(b *backendPool, r updater.Report) {
	s := p.stage
	if r.InSync && len(r.Written) == 0 || r.Outcome == diff.Stale {
		s.runLater(func() {
			if waitLatency(p.ctx, reconcileDelay+s.orderDelay(b.ref)) == nil {
				p.releasePool(b)
			}
		})
		return
	}
	at := time.Now().Add(removeRetryDelay)
	p.removeRetries[b.ref] = at
	s.runLater(func() {
		if !waitFor(removeRetryDelay, p.ctx.Done()) {
			return
		}
		s.mu.Lock()
		due := p.removeRetries[b.ref].Equal(at) && s.cluster.byRef(b.ref) != nil
		s.mu.Unlock()
		if due {
			p.reconcilePool(b, true)
		}
	})
}

// releasePool deletes a BackendPool, and the process's state of its pool.
func (p *process) releasePool(b *backendPool) {
	s := p.stage
	s.mu.Lock()
	if p.killed || p.isOldLeader || s.cluster.byRef(b.ref) != b {
		s.mu.Unlock()
		return
	}
	k := s.pools[b.pool.Key()]
	if k.isEmpty = !b.isPaused && !k.deleted && p.statusEntries[b.ref].taken; k.isEmpty {
		s.checkEmpty(k)
	}
	if b.isPaused {
		s.markOrphaned(k)
	}
	s.addLine(k.id.Name, "its BackendPool is gone")
	delete(s.cluster.bindings, k.id.Name)
	delete(p.statusEntries, b.ref)
	a, begun, ended := k.attempt, k.startedAt, k.endedAt
	excuse := latest(k.rejectedUntil, k.excusedUntil) // the client keeps it even if the updater does not
	k.clearState()
	k.excusedUntil = excuse
	k.startedAt, k.endedAt = begun, ended // the worker was busy
	if a != nil && !a.isOver {
		a.isOrphaned, k.attempt = true, a
	}
	s.mu.Unlock()
	p.updater.Forget(b.pool)
}

// checkEmpty checks a released pool. The caller holds s.mu.
func (s *Stage) checkEmpty(k *pool) {
	held, _ := s.azureAddresses(k)
	for _, a := range held {
		if !isForeignAddress(k, a.IP) && !k.orphaned.added[a.IP] {
			s.history.orphanedAddresses = append(s.history.orphanedAddresses, fmt.Sprintf("the BackendPool of %s goes, and %s is still in the pool", k.id.Name, a.IP))
		}
	}
}

func (p *pool) queueChange() {
	if p.queuedAt.IsZero() {
		p.queuedAt = time.Now()
	}
	if p.firstQueuedAt.IsZero() {
		p.firstQueuedAt = time.Now()
	}
}

// clearState drops the process's state of a pool.
func (p *pool) clearState() {
	var none time.Time
	p.attempt, p.inSync, p.parkedUntil, p.failures, p.consecutiveFailures = nil, false, none, 0, 0
	p.lastEvents, p.failureReason, p.retryAt, p.queuedAt, p.firstQueuedAt, p.deferredAt = nil, "", none, none, none, none
	p.adminQueued, p.isReadQueued = false, false
	p.startedAt, p.endedAt, p.rejectedUntil, p.excusedUntil = none, none, none, none
	p.rate = poolRate{operations: p.operations}
}

// newBackendPool creates a BackendPool for a pool. Members of a previous one have no owner until the pool is
// adopted. The caller holds s.mu.
func (s *Stage) newBackendPool(service string, nodes []string, k *pool) *backendPool {
	if k.hadBackendPool {
		held, _ := s.azureAddresses(k)
		for _, a := range held {
			if !isForeignAddress(k, a.IP) {
				k.foreign = append(k.foreign, a)
			}
		}
	}
	k.hadBackendPool, k.isEmpty, k.isDrifted, k.gaveUp = true, false, false, false
	k.faultEnd = latest(k.faultEnd, time.Now())
	return s.cluster.bindPool(service, nodes, k.id)
}

// findBackendPool returns the BackendPool of a pool. The caller holds s.mu.
func (s *Stage) findBackendPool(name string) (*backendPool, error) {
	if b := s.cluster.bindings[name]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("there is no BackendPool %s", name)
}

// isManaged reports whether an active BackendPool manages the pool.
func (s *Stage) isManaged(k *pool) bool {
	b := s.cluster.bindings[k.id.Name]
	return b != nil && !b.isPaused
}

// resetDeadlines restarts the time limit within which pools must get in sync.
func (s *Stage) resetDeadlines(hit func(*pool) bool) {
	for _, k := range s.pools {
		if hit(k) {
			k.faultEnd = latest(k.faultEnd, time.Now())
		}
	}
}

func anyPool(*pool) bool { return true }

// sharesLoadBalancer reports whether another pool has the same load balancer.
func (p *pool) sharesLoadBalancer(other *pool) bool {
	return p.id.LoadBalancer.Key() == other.id.LoadBalancer.Key()
}
