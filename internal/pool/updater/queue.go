// SPDX-License-Identifier: Apache-2.0

package updater

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/ratelimit"
)

// queue holds the operations and state of one load balancer's pools. Its lock is never held across a call.
type queue struct {
	resyncPeriod time.Duration
	interval     time.Duration
	// setHolds sets how long changes of busy pools wait; nil: they do not wait.
	setHolds func(groups []*schedule.Group, now time.Time)
	// deferChanges returns the deferrals of the newest of a namespace's due changes; nil defers none.
	deferChanges func(namespace string, due int, now time.Time) []ratelimit.Deferral

	mu       sync.Mutex
	pools    map[lb.PoolKey]*poolEntry
	withOps  map[lb.PoolKey]*poolEntry
	depth    int
	rotation ratelimit.Rotation
	// turn is nil while another writer holds the worker.
	turn       *schedule.Turn
	nextResync time.Time
	debouncer  schedule.Debouncer
	wakeup     chan struct{}
}

type poolEntry struct {
	ops               []schedule.Operation
	history           schedule.History
	inFlight          bool
	oldestQueuedAt    time.Time
	syncedFingerprint *uint64
	notified          schedule.Notifications
	subject           schedule.Subject
	// resyncAt is the next resync; the other two are set once it is due.
	resyncAt       time.Time
	resyncDue      bool
	resyncDueSince time.Time
	reportedWait   *Waiting
	// wakePending records, during an attempt, a change or completed machines.
	wakePending bool
	retriedAt   time.Time
}

func newQueue(driftPeriod, interval time.Duration) *queue {
	return &queue{resyncPeriod: driftPeriod, interval: interval, pools: map[lb.PoolKey]*poolEntry{}, withOps: map[lb.PoolKey]*poolEntry{}, wakeup: make(chan struct{}, 1)}
}

// enqueue counts operations not coalesced. sooner is true if a waiting pool became due earlier.
func (q *queue) enqueue(now time.Time, ops ...schedule.Operation) (queued int, sooner bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.depth
	for _, op := range ops {
		op.QueuedAt = now
		key := op.Pool.Key()
		p, known := q.pools[key]
		if !known {
			p = &poolEntry{}
			q.pools[key] = p
			q.scheduleCheck(key, p, now)
		}
		p.restoreState(op, !known)
		if !op.Admin || p.subject.Ref != op.Ref {
			p.subject = op.Subject()
		}
		p.history.NotBefore = ratelimit.MaxTime(p.history.NotBefore, op.NotBefore)
		if op.IsCheck() && !op.OutOfSync && !op.Admin {
			q.debouncer.AddCheck(now)
		}
		due, wasWaiting := q.dueAt(key, p, now)
		p.endWait()
		q.setOps(key, p, schedule.MergeOperations(p.ops, op))
		if wasWaiting {
			newDue, _ := q.dueAt(key, p, now)
			sooner = sooner || newDue.Before(due)
		}
	}
	return q.depth - before, sooner
}

func (q *queue) dueAt(key lb.PoolKey, p *poolEntry, now time.Time) (at time.Time, waiting bool) {
	if len(p.ops) == 0 || p.inFlight {
		return at, false
	}
	return q.groupAt(key, p, now).ReadyAt(q.interval), true
}

func (p *poolEntry) restoreState(op schedule.Operation, isNew bool) {
	if isNew {
		p.history.FinalError = op.LastNotification.FailureReason
	}
	if p.notified.Of(op.Service) != "" || !op.LastNotification.IsFailure {
		return
	}
	p.notified = p.notified.With(op.Service, schedule.NotifyRetrying) // or Failed: either has the next success reported
}

// The caller holds q.mu.
func (q *queue) setOps(key lb.PoolKey, p *poolEntry, ops []schedule.Operation) {
	q.depth += len(ops) - len(p.ops)
	p.ops = ops
	if len(ops) > 0 || p.resyncDue {
		q.withOps[key] = p
	} else {
		delete(q.withOps, key)
	}
	if len(ops) == 0 {
		p.reportedWait = nil // later operations are reported again
	}
}

func (q *queue) removeMatching(match func(schedule.Operation) bool) int {
	q.mu.Lock()
	before := q.depth
	for key, p := range q.withOps {
		q.setOps(key, p, slices.DeleteFunc(p.ops, match))
	}
	removed := before - q.depth
	q.mu.Unlock()
	q.wakeWorker()
	return removed
}

// resetRetries acts at most once per interval and pool: tenants can request it, and admin states are not paced.
func resetRetries(q *queue, ref schedule.Ref, now time.Time) {
	q.mu.Lock()
	for _, p := range q.withOps {
		matches := func(op schedule.Operation) bool { return op.Ref == ref }
		if !slices.ContainsFunc(p.ops, matches) || now.Before(p.retriedAt.Add(q.interval)) {
			continue
		}
		p.retriedAt, p.history.WaitUntil, p.history.DelayCount = now, time.Time{}, 0
		for at, op := range p.ops {
			if matches(op) {
				p.ops[at] = op.ResetRetries()
			}
		}
	}
	q.mu.Unlock()
	q.wakeWorker()
}

func (q *queue) removePool(pool lb.PoolKey) {
	q.mu.Lock()
	if p := q.pools[pool]; p != nil {
		p.resyncDue = false
		q.setOps(pool, p, nil)
		delete(q.pools, pool)
	}
	q.mu.Unlock()
	q.wakeWorker()
}

func (q *queue) isEmpty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.pools) == 0
}

func (q *queue) releaseHeld() {
	q.mu.Lock()
	for _, p := range q.withOps {
		p.history.WaitUntil, p.history.DelayCount = time.Time{}, 0
	}
	q.mu.Unlock()
	q.wakeWorker()
}

// nextPool returns the pool to attempt and counts it in the turn, or returns when to call again.
func (q *queue) nextPool(now time.Time) (lb.PoolKey, bool, time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.markDueChecks(now)
	groups := q.waitingGroups(now)
	q.updateOrder(groups, now)
	if q.turn != nil {
		groups = q.turn.FilterRemaining(groups, now, q.interval)
	}
	pick, ok, retryAt := schedule.SelectPool(groups, now, q.interval)
	if slices.ContainsFunc(groups, func(g schedule.Group) bool { return g.IsPaced(now, q.interval) || g.IsDeferred(now, q.interval) }) {
		retryAt = ratelimit.MinTime(retryAt, now.Add(pacePollInterval))
	}
	if ok && q.turn != nil {
		q.turn.StartAttempt()
	}
	return pick, ok, ratelimit.MinTime(retryAt, q.nextResync)
}

// pacePollInterval is how often a pace is polled: quotas recover continuously.
const pacePollInterval = time.Second

func setTurn(q *queue, t *schedule.Turn) {
	q.mu.Lock()
	q.turn = t
	q.mu.Unlock()
}

// The caller holds q.mu.
func (q *queue) updateOrder(groups []schedule.Group, now time.Time) {
	waiting := map[string]bool{}
	for _, g := range groups {
		waiting[g.Namespace] = true
	}
	q.rotation.SetNamespaces(slices.Sorted(maps.Keys(waiting)))
	q.rotation.UpdateRound(schedule.ReadyNamespaces(groups, now, q.interval))
	q.setTurns(groups)
}

func (q *queue) selectPools(selection func([]schedule.Group, time.Time, time.Duration) []lb.PoolKey, now time.Time) []lb.PoolKey {
	q.mu.Lock()
	defer q.mu.Unlock()
	groups := q.waitingGroups(now)
	q.setTurns(groups)
	return selection(groups, now, q.interval)
}

func (q *queue) setTurns(groups []schedule.Group) {
	for i, g := range groups {
		groups[i].Order, groups[i].InNextRound = q.rotation.OrderOf(g.Namespace), q.rotation.InNextRound(g.Namespace)
	}
}

// The caller holds q.mu.
func (q *queue) waitingGroups(now time.Time) []schedule.Group {
	groups := make([]schedule.Group, 0, len(q.withOps))
	for key, p := range q.withOps {
		groups = append(groups, p.newGroup(key, q.debouncer))
	}
	q.setPace(groups, now)
	return groups
}

// The caller holds q.mu.
func (q *queue) setPace(groups []schedule.Group, now time.Time) {
	var contend []*schedule.Group
	for i, g := range groups {
		if g.MayNeedPace(now, q.interval) {
			contend = append(contend, &groups[i])
		}
	}
	if q.setHolds != nil && len(contend) > 0 {
		q.setHolds(contend, now)
	}
	deferExcess(q, groups, now)
}

// deferExcess defers a namespace's newest changes beyond its share. The caller holds q.mu.
func deferExcess(q *queue, groups []schedule.Group, now time.Time) {
	if q.deferChanges == nil {
		return
	}
	due := map[string][]*schedule.Group{}
	for i, g := range groups {
		if g.NeedsShare(now, q.interval) {
			due[g.Namespace] = append(due[g.Namespace], &groups[i])
		}
	}
	for namespace, deferrable := range due {
		deferrals := q.deferChanges(namespace, len(deferrable), now)
		if len(deferrals) == 0 {
			continue
		}
		slices.SortFunc(deferrable, func(a, b *schedule.Group) int {
			return cmp.Or(a.FirstQueued.Compare(b.FirstQueued), cmp.Compare(a.Pool, b.Pool))
		})
		for i, d := range deferrals {
			g := deferrable[len(deferrable)-len(deferrals)+i]
			g.Deferred, g.DeferReason = d.Until, d.String()
		}
	}
}

func (q *queue) groupAt(key lb.PoolKey, p *poolEntry, now time.Time) schedule.Group {
	groups := []schedule.Group{p.newGroup(key, q.debouncer)}
	q.setPace(groups, now)
	return groups[0]
}

func (p *poolEntry) newGroup(key lb.PoolKey, c schedule.Debouncer) schedule.Group {
	g := schedule.NewGroup(key, p.ops, p.history)
	if len(p.ops) == 0 {
		g = schedule.NewCheckGroup(key, p.subject.Ref.Namespace, p.resyncDueSince, p.history)
	}
	g.DebouncedUntil = c.ReadyAt()
	return g
}

func (q *queue) isInSync(pool lb.PoolKey, fingerprint uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.pools[pool]
	return p != nil && !p.inFlight && len(p.ops) == 0 && p.syncedFingerprint != nil && *p.syncedFingerprint == fingerprint
}

func (q *queue) wakeWorker() {
	select {
	case q.wakeup <- struct{}{}:
	default:
	}
}

// NotifyMachinesDone ends a pool's wait for its machines. A pool that lacks some machines is checked: they may have
// joined.
func (ws *Workers) NotifyMachinesDone(pool lb.PoolID) {
	if w := ws.findWorker(pool); w != nil {
		endMachineWait(w.queue, pool.Key())
	}
}

// endMachineWait takes effect at the end of a running attempt, which may have missed it.
func endMachineWait(q *queue, pool lb.PoolKey) {
	q.mu.Lock()
	p := q.pools[pool]
	woken := p != nil && p.endWait()
	if p != nil && !p.inFlight && p.history.HasUnusable {
		woken = true
		p.requestCheck(time.Now())
		q.setOps(pool, p, p.ops)
	}
	q.mu.Unlock()
	if woken {
		q.wakeWorker()
	}
}

// endWait ends the wait for machines, also of a running attempt. The caller holds q.mu.
func (p *poolEntry) endWait() (woken bool) {
	if p.wakePending = p.inFlight; !p.inFlight {
		p.history, woken = p.history.EndMachineWait()
	}
	return woken
}

// The caller holds q.mu.
func (p *poolEntry) storeHistory(h schedule.History) {
	p.history = h
	if !p.wakePending {
		return
	}
	if p.history, _ = h.EndMachineWait(); h.HasUnusable {
		p.requestCheck(time.Now())
	}
}

// The caller holds q.mu.
func (p *poolEntry) requestCheck(now time.Time) {
	if !p.resyncDue {
		p.resyncDue, p.resyncDueSince = true, now
	}
}

func releasePools(q *queue, ref schedule.Ref) (pools []lb.PoolID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range q.pools {
		if p.history.TargetHash != 0 && p.subject.Ref == ref {
			p.history.TargetHash = 0
			pools = append(pools, p.subject.Pool)
		}
	}
	return pools
}

// Backlog counts what waits in all workers.
type Backlog struct {
	Operations int
	Parked     int
	// OldestQueuedAt is of unsettled operations; zero if none.
	OldestQueuedAt time.Time
}

func (q *queue) addBacklog(b Backlog, now time.Time) Backlog {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.Operations += q.depth
	for _, p := range q.pools {
		if !p.inFlight && len(p.ops) == 0 { // true of most pools
			continue
		}
		oldest := time.Time{}
		if p.inFlight {
			oldest = p.oldestQueuedAt
		}
		if g := schedule.NewGroup("", p.ops, p.history); len(p.ops) > 0 {
			oldest = ratelimit.MinTime(oldest, g.OldestQueued())
			if ratelimit.MaxTime(g.ParkedUntil, p.history.NotBefore).After(now) {
				b.Parked++
			}
		}
		b.OldestQueuedAt = ratelimit.MinTime(b.OldestQueuedAt, oldest)
	}
	return b
}
